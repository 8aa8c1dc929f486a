// Follow an organism from a browser and miss nothing. The page must come from the organism's own server.
//
//   follow({ token, filter: { agents: "greeter" }, onState: draw, onEvent: add });
//
// `onState` gets how everything stands, once, and again only if the log was restored since. `onEvent` gets every event
// after it, each once and in order, over lost connections and kills of the server. `place` is where it stands: hand it
// in again (from sessionStorage, say) to go on there after a reload. Text of a run comes twice, at once and from the log:
// keep of a delta what its `offset` says is new, counted in code points. Gives a function that ends it.
"use strict";

const NOT_AUTHENTICATED = 4401;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;

function follow({ token, filter = {}, place = {}, onState = () => {}, onEvent }) {
  let socket;
  let timer;
  let delay = FIRST_DELAY_MS;

  function connect() {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.search = new URLSearchParams({ ...filter, ...place, batch: "true" });
    socket = new WebSocket(url);
    socket.onopen = () => socket.send(JSON.stringify({ cmd: "auth", token }));
    socket.onmessage = ({ data }) => [JSON.parse(data)].flat().forEach(take);
    socket.onclose = ({ code }) => {
      if (code === NOT_AUTHENTICATED) return;
      timer = setTimeout(connect, delay);
      delay = Math.min(delay * 2, MAX_DELAY_MS);
    };
  }

  function take(frame) {
    if (frame.event === "ok") return; // the answer to `auth`: its position is the head, not ours
    if (frame.code === "bad_position") {
      delete place.since;
      delete place.log;
      return;
    }
    if (frame.event === "connected") {
      place.log = frame.log;
      delay = FIRST_DELAY_MS;
      if (frame.organism) onState(frame);
    } else if (!["caught_up", "checkpoint", "fell_behind"].includes(frame.event)) {
      onEvent(frame);
    }
    if (frame.position !== undefined) place.since = frame.position;
  }

  connect();
  return () => {
    clearTimeout(timer);
    socket.onclose = null;
    socket.close();
  };
}
