// One connection that comes back: it resumes by position, so that nothing is missed and nothing is told twice.

const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 8000;

/**
 * handlers.frame(frame) gets every frame; handlers.status(state, text) says how the connection stands;
 * handlers.resumeFrom() gives {position, log} of the picture, or null for a fresh start;
 * handlers.refused() is called if the token is not taken.
 */
export function connect(token, handlers) {
  let delay = FIRST_DELAY_MS;
  let socket = null;
  let timer = 0;
  let ended = false;

  function open() {
    const from = handlers.resumeFrom();
    const query = from ? `?since=${from.position}&log=${encodeURIComponent(from.log)}` : "";
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}/ws${query}`);
    handlers.status("connecting", from ? `Reconnecting after position ${from.position}…` : "Connecting…");
    socket.onopen = () => socket.send(JSON.stringify({ cmd: "auth", token, id: "auth" }));
    socket.onmessage = (message) => receive(JSON.parse(message.data), from);
    socket.onclose = (closed) => lost(closed.code);
  }

  function receive(frame, from) {
    if (frame.event === "connected") {
      delay = FIRST_DELAY_MS;
      if (from) handlers.status("catching", `Resumed after position ${from.position}…`);
      else handlers.status("live", "Live");
    }
    if (frame.event === "caught_up") handlers.status("live", `Live – nothing missed up to position ${frame.position}`);
    if (frame.event === "fell_behind") handlers.status("catching", `Catching up from position ${frame.position}…`);
    if (frame.event === "error" && frame.code === "bad_position") handlers.forget();
    handlers.frame(frame);
  }

  function lost(code) {
    if (ended) return;
    if (code === 4401) {
      handlers.status("lost", "Not authenticated");
      handlers.refused();
      return;
    }
    const seconds = Math.max(1, Math.round(delay / 1000));
    handlers.status("lost", `Connection lost – trying again in ${seconds} s`);
    timer = setTimeout(open, delay);
    delay = Math.min(delay * 2, MAX_DELAY_MS);
  }

  open();
  return {
    close() {
      ended = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}
