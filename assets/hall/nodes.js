// Builds what the server tells as nodes: texts, and [tag, attributes, ...children]; nothing is read as markup.

const TAGS = new Set("p em strong code pre br hr ul ol li blockquote h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split(" "));

export function build(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, , ...children] = node;
    const made = document.createElement(TAGS.has(tag) ? tag : "span");
    made.append(...build(children));
    return made;
  });
}
