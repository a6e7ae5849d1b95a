// One instance a place, for as long as the place is in the page. Streamlit runs a component again at every change, and may
// call a run overtaken, and clean it up, after it has drawn and before the next one does: what is shown stays until then.

const instances = new WeakMap();

export function lasting(place, make) {
  if (!instances.has(place)) instances.set(place, make(place));
  return instances.get(place);
}

export function release(place) {
  if (place.isConnected || !instances.has(place)) return;
  instances.get(place).remove();
  instances.delete(place);
}
