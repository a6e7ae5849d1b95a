// A room at the server: what is sent to it, and what it tells.

const MS_UNTIL_AGAIN = 1000, MOST_MS_UNTIL_AGAIN = 15000;

const sent = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// What the server answers, with its status; { error } in words where it refuses; status 0 where it cannot be reached.
export async function post(base, path, body) {
  try {
    const answer = await fetch(`${base}room/${path}`, sent(body));
    const json = answer.headers.get("content-type")?.startsWith("application/json");
    return { status: answer.status, ...(json ? await answer.json() : { file: await answer.blob() }) };
  } catch {
    return { status: 0 };
  }
}

// Call `act` with each state that the server tells, the newest at once; where the connection breaks, connect again.
// `open` makes the request, `lost` hears that it broke. Returns what ends it.
export function follow(open, act, lost = () => {}) {
  let stopped = false, wait = MS_UNTIL_AGAIN;
  const ending = new AbortController();
  async function listen() {
    const answer = await open(ending.signal);
    if (answer.status === 404) return void act({ closed: true });
    if (!answer.ok) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      wait = MS_UNTIL_AGAIN;
      const told = parts.filter((part) => part.startsWith("data: ")).pop();
      if (told) act(JSON.parse(told.slice("data: ".length)));
    }
  }
  (async () => {
    while (!stopped) {
      await listen().catch(() => {});
      if (stopped) return;
      lost();
      await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random())));
      wait = Math.min(2 * wait, MOST_MS_UNTIL_AGAIN);
    }
  })();
  return () => {
    stopped = true;
    ending.abort();
  };
}

export const followRoom = (base, { code, secret }, act) =>
  follow((signal) => fetch(`${base}room/${code}/lecturer`, { ...sent({ secret }), signal }), act);
