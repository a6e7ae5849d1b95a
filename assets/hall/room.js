// A room at the server: what is sent to it, and what it tells.

export async function post(path, body) {
  const answer = await fetch(`./room/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return answer.json();
}

export function follow({ code, secret }, act) {
  const source = new EventSource(`./room/${code}/lecturer?secret=${secret}`);
  source.addEventListener("message", ({ data }) => act(JSON.parse(data)));
  return () => source.close();
}
