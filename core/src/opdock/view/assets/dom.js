// Elements. All that comes from the data goes through text nodes and values, never through markup.
function h(tag, given, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(given || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "value" || key === "disabled") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== ""));
  return element;
}

function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined));
}

function swatch(color) {
  const mark = h("span", { class: "swatch", "aria-hidden": "true" });
  mark.style.background = color;
  return mark;
}

// A bar of so much of the whole, behind a figure.
function bar(share, color) {
  const inner = h("span", { class: "bar-in" });
  inner.style.width = `${Math.max(Math.min(share, 1) * 100, share > 0 ? 1 : 0)}%`;
  if (color) inner.style.background = color;
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

// A canvas as sharp as the screen; `draw(context, width, height)` paints it when it must.
class Sheet {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.draw = draw;
    this.width = this.height = 0;
    this.waiting = false;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = this.canvas.dataset.height ? Number(this.canvas.dataset.height) : box.height;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.paint();
  }

  // Paints before the next frame, however often it is asked.
  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  paint() {
    if (!this.width) return;
    const context = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.draw(context, this.width, this.height);
  }
}

// Where in an element a pointer is.
function placeIn(element, event) {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
