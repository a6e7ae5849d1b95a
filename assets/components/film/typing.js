// What the keyboard does, wherever in the film the focus is.
// Next: timeline.js.

const FREE = new Set(["SELECT", "INPUT", "TEXTAREA"]);

// act: play, to (a frame), loop, letGo, head (before or after); clock: where the film stands.
export function typing(root, clock, act) {
  const moves = {
    ArrowLeft: () => act.to(clock.frame - 1),
    ArrowRight: () => act.to(clock.frame + 1),
    PageUp: () => act.to(clock.frame - 5),
    PageDown: () => act.to(clock.frame + 5),
    Home: () => act.to(0),
    End: () => act.to(clock.last),
    " ": () => act.play(),
    k: () => act.play(),
    l: () => act.loop(),
    Escape: () => act.letGo(),
    "[": () => act.head(-1),
    "]": () => act.head(1),
  };
  root.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || FREE.has(target.tagName)) return;
    if (event.key === " " && target.tagName === "BUTTON") return; // presses the button
    if (!moves[event.key]) return;
    moves[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
}
