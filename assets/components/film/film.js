// The two places where the film is shown: a Streamlit component (the default export), which fetches runs from the server,
// and a stand-alone page (playing), which holds them.

import { lasting, release } from "../lasting.js";
import { Feed } from "./feed.js";
import { Player } from "./player.js";

function connected(parent) {
  const address = (id, part, query) => {
    const { base, language } = player.data;
    return new URL(`${base}film/${id}${part}?${new URLSearchParams({ ...query, lang: language })}`, document.baseURI);
  };
  const player = new Player(parent, (reel, tell) => new Feed(reel, address, tell));
  return player;
}

export default function film({ data, parentElement, setStateValue, setTriggerValue }) {
  const player = lasting(parentElement, connected);
  player.receive(data, { view: (view) => setStateValue("view", view), ask: (ask) => setTriggerValue("ask", ask) });
  return () => release(parentElement);
}

// The finished runs of a page made by to_html: their bytes wait in the page as base64.
function playing(page) {
  const place = page.getElementById("figure");
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const { films, probes, ...data } = JSON.parse(place.dataset.film);
  const player = new Player(place, (reel) => {
    const k = data.runs.findIndex(({ id }) => id === reel.id);
    reel.add(bytes(films[k]));
    if (!probes[k]) return null;
    reel.ask(data.probe);
    reel.addProbe(data.probe, bytes(probes[k]));
    return null;
  });
  player.receive(data, null);
}
