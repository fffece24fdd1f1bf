// How a box and an edge look.
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const NAME_FONT = `600 12px ${FONT}`;
const SMALL_FONT = `11px ${FONT}`;
const LONGEST = 190;
const SMALLEST_TEXT = 0.42; // below this scale, text is a smear

const ink = {}; // the page's colors, for canvases
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "panel", "raised", "line", "text", "faint", "accent", "edge"]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

const widths = new Map();
function textWidth(context, text, font) {
  const key = `${font}|${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    context.font = font;
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

function shorten(context, text, font, most) {
  if (textWidth(context, text, font) <= most) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(context, `${text.slice(0, middle)}…`, font) <= most) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

function isGroup(box) {
  return box.kind !== "node" && box.kind !== "member";
}

// The second line of a box.
function boxNote(box, program, colors) {
  const weight = colors.by === "time" && box.us ? micros(box.us)
    : colors.by === "memory" && box.bytes ? size(box.bytes) : "";
  let what = box.node ? opName(box.node) : count(box.count, "op");
  if (box.kind === "fused") what = `${box.node.members.length} ops fused`;
  return weight ? `${what} · ${weight}` : what;
}

function opName(node) {
  if (node.op === "_Copy") return `copy: ${node.row.kernel || ""}`;
  return plainOp(node.op);
}

// Without the mark of the compiler's own, and without the plugin's name, which stands before ">".
function plainOp(op) {
  return op.replace(/^_/, "").replace(/^[^>]*>/, "");
}

function measureBox(context, box, program, colors) {
  const name = textWidth(context, box.label, NAME_FONT);
  const note = textWidth(context, boxNote(box, program, colors), SMALL_FONT);
  const sign = isGroup(box) ? 20 : 0;
  const width = Math.min(Math.max(name + sign, note + sign, 44), LONGEST) + 24;
  return { width: Math.ceil(width), height: 42 };
}

function roundRect(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

function drawBox(context, box, pane) {
  const { program, colors, scale } = pane;
  const group = isGroup(box);
  const chosen = pane.isChosen(box);
  const faded = pane.isFaded(box);
  const radius = box.kind === "part" || box.kind === "scope" ? 8 : 5;
  context.globalAlpha = faded ? 0.42 : 1;
  if (box.open) drawOpen(context, box, pane, radius);
  else {
    if (group) { // a pile
      context.fillStyle = ink.raised;
      context.strokeStyle = ink.line;
      context.lineWidth = 1;
      roundRect(context, box.x + 3, box.y + 3, box.width, box.height, radius);
      context.fill();
      context.stroke();
    }
    context.fillStyle = ink.panel;
    roundRect(context, box.x, box.y, box.width, box.height, radius);
    context.fill();
    drawStripe(context, box, pane, radius);
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    roundRect(context, box.x, box.y, box.width, box.height, radius);
    context.stroke();
    if (scale > SMALLEST_TEXT) drawLabel(context, box, program, colors);
  }
  if (box.node && isElsewhere(box.node)) drawMark(context, box);
  context.globalAlpha = 1;
  if (chosen) {
    context.strokeStyle = ink.accent;
    context.lineWidth = Math.max(2.5, 2 / scale);
    roundRect(context, box.x - 2, box.y - 2, box.width + 4, box.height + 4, radius + 2);
    context.stroke();
  }
}

// A stripe at the left of a node; of a group, divided as its nodes are.
function drawStripe(context, box, pane, radius) {
  const wide = pane.scale > SMALLEST_TEXT ? 6 : box.width;
  if (pane.scale <= SMALLEST_TEXT && box.node && !box.node.members.length) {
    context.fillStyle = colorOf(pane, box.node); // there may be many, and corners are not seen
    context.fillRect(box.x, box.y, box.width, box.height);
    return;
  }
  context.save();
  roundRect(context, box.x, box.y, box.width, box.height, radius);
  context.clip();
  const parts = box.node && !box.node.members.length
    ? [[colorOf(pane, box.node), 1]] : pane.tree.shares(box, pane.colors);
  const all = parts.reduce((sum, part) => sum + part[1], 0);
  let y = box.y;
  for (const [color, number] of parts) {
    const height = (box.height * number) / all;
    context.fillStyle = color;
    context.fillRect(box.x, y, wide, height + 0.5);
    y += height;
  }
  context.restore();
}

function colorOf(pane, node) {
  return pane.colors.node(pane.program, node);
}

function drawLabel(context, box, program, colors) {
  const sign = isGroup(box) ? 20 : 0;
  const room = box.width - 22 - sign;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = ink.text;
  const name = shorten(context, box.label, NAME_FONT, room);
  context.font = NAME_FONT;
  context.fillText(name, box.x + 14, box.y + 15);
  const note = shorten(context, boxNote(box, program, colors), SMALL_FONT, room);
  context.font = SMALL_FONT;
  context.fillStyle = ink.faint;
  context.fillText(note, box.x + 14, box.y + 30);
  if (sign) drawSign(context, box);
}

function signPlace(box) {
  return { x: box.x + box.width - 22, y: box.y + (box.open ? 5 : 13), size: 16 };
}

function drawSign(context, box) {
  const at = signPlace(box);
  context.strokeStyle = ink.faint;
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(at.x + 4, at.y + 8);
  context.lineTo(at.x + 12, at.y + 8);
  if (!box.open) {
    context.moveTo(at.x + 8, at.y + 4);
    context.lineTo(at.x + 8, at.y + 12);
  }
  context.stroke();
  roundRect(context, at.x, at.y, at.size, at.size, 4);
  context.stroke();
}

function drawOpen(context, box, pane, radius) {
  const fused = box.kind === "fused";
  context.fillStyle = box.depth % 2 ? ink.raised : ink.panel;
  roundRect(context, box.x, box.y, box.width, box.height, radius);
  context.fill();
  context.strokeStyle = fused ? WAY_COLORS.fused : ink.line;
  context.lineWidth = fused ? 1.5 : 1;
  context.setLineDash(box.kind === "part" ? [5, 4] : []);
  context.stroke();
  context.setLineDash([]);
  if (pane.scale <= SMALLEST_TEXT) return;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = ink.faint;
  const room = box.width - 44;
  const text = fused ? `${box.label} — ${boxNote(box, pane.program, pane.colors)}` : box.label;
  const shown = shorten(context, text, NAME_FONT, room);
  context.font = NAME_FONT;
  context.fillText(shown, box.x + 12, box.y + 14);
  drawSign(context, box);
}

// A node that is not where it was asked to be.
function drawMark(context, box) {
  context.fillStyle = "#e45756";
  context.beginPath();
  context.arc(box.x + box.width - 3, box.y + 3, 5, 0, 7);
  context.fill();
}

// An edge from the bottom of one box to the top of another, through the points between.
function edgePath(edge) {
  const { from, to, down } = edge;
  const points = [{ x: from.x + from.width / 2, y: down ? from.y + from.height : from.y }];
  points.push(...bendsOf(edge));
  points.push({ x: to.x + to.width / 2, y: down ? to.y : to.y + to.height });
  return points;
}

function traceEdge(context, points) {
  context.moveTo(points[0].x, points[0].y);
  for (let i = 1; i < points.length; i++) {
    const a = points[i - 1], b = points[i];
    const middle = (a.y + b.y) / 2;
    context.bezierCurveTo(a.x, middle, b.x, middle, b.x, b.y);
  }
}

function drawArrow(context, points, scale) {
  const tip = points[points.length - 1];
  const up = points[points.length - 2].y > tip.y ? -1 : 1;
  const wide = 3.5 / Math.max(Math.min(scale, 1), 0.5);
  context.beginPath();
  context.moveTo(tip.x, tip.y);
  context.lineTo(tip.x - wide, tip.y - 1.8 * wide * up);
  context.lineTo(tip.x + wide, tip.y - 1.8 * wide * up);
  context.fill();
}
