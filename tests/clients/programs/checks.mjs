// What the programs in JavaScript use: where the server is, what its model answers, and checks that print their outcome.

export const { ORGANISM_URL: url, ORGANISM_TOKEN: token, SPENT_TOKEN: spentToken } = process.env;
export const hello = [{ role: "user", content: "Hello!" }];
/** A call of the client's own function. */
export const order = { name: "find", arguments: { id: 7 }, id: "call_a" };
const shownChars = 300;

/** Run `act` with a model that was told nothing; print whether it holds. */
export async function check(sentence, act) {
  try {
    await steer("DELETE", "");
    await act();
    console.log(`ok ${sentence}`);
  } catch (error) {
    const said = `${error?.name}: ${error?.message ?? error}`.split(/\s+/).join(" ");
    console.log(`not ok ${sentence} — ${said.slice(0, shownChars)}`);
  }
}

/** What the model answers, one call after the other. */
export const tell = (...answers) =>
  steer("POST", "script", JSON.stringify(answers.map((each) => ({ body: null, calls: [], ...each }))));

/** A refusal of the model's provider, whose JSON has these fields; it is given as often as one asks. */
export const refuse = (status, error) => ({
  status,
  body: btoa(JSON.stringify({ error: { param: null, code: null, ...error } })),
  times: 0,
  headers: { "retry-after": "7" },
});

/** What the model was asked since the check began. */
export const asked = async () => (await steer("GET", "requests")).map((request) => request.body);

async function steer(method, what, body) {
  const answer = await fetch(`${process.env.PEER_URL}/_peer/${what}`, { method, body });
  return answer.json();
}
