// Puts the cursor into the box with a key of Streamlit as soon as both are on the page, for who opened it by a key.

import { lasting, release } from "../kit.js";

class Focus {
  constructor(key) {
    const box = () => document.querySelector(`.st-key-${CSS.escape(key)} input`);
    const frame = () => (this.ended ? null : box() ? box().focus() : requestAnimationFrame(frame));
    frame();
  }

  remove() {
    this.ended = true;
  }
}

export default function focus({ data, parentElement }) {
  lasting(parentElement, () => new Focus(data.key));
  return () => release(parentElement);
}
