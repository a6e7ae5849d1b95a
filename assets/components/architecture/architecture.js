// Shows an SVG whose parts with data-part can be clicked or chosen with Enter; tells Python which part was chosen.

import { signSideways } from "../kit.js";

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let host = parentElement.querySelector(".architecture");
  if (!host) {
    host = document.createElement("div");
    host.className = "architecture";
    const frame = document.createElement("div");
    frame.className = "sideways";
    frame.append(host);
    parentElement.appendChild(frame);
    signSideways(frame, host);
    if (parentElement.host) parentElement.host.dataset.stands = ""; // as of kit.js
  }
  const drawing = new DOMParser().parseFromString(data.svg, "image/svg+xml").documentElement;
  host.replaceChildren(document.importNode(drawing, true));
  for (const part of host.querySelectorAll("[data-part]")) {
    const open = () => setTriggerValue("open", part.dataset.part);
    part.addEventListener("click", open);
    part.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open();
      }
    });
  }
}
