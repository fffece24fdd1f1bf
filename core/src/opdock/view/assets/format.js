// Numbers and names as people read them.
function shortDevice(name) {
  const at = name.toLowerCase().lastIndexOf("device:");
  return at < 0 ? name.replace(/^\//, "") : name.slice(at + 7);
}

// Reasons name devices in full; on a machine of one task, what stands before the type says nothing.
function tidy(text) {
  return text.replaceAll("/job:localhost/replica:0/task:0/device:", "");
}

function lastPart(name) {
  const at = name.lastIndexOf("/");
  return at < 0 ? name : name.slice(at + 1);
}

function micros(us) {
  if (us === null || us === undefined) return "";
  if (us === 0) return "0";
  if (us >= 1e6) return `${(us / 1e6).toPrecision(3)} s`;
  if (us >= 1e3) return `${(us / 1e3).toPrecision(3)} ms`;
  return us >= 100 ? `${us.toFixed(0)} µs` : `${us.toPrecision(2)} µs`;
}

function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${unit === "B" ? value : value.toPrecision(3)} ${unit}`;
    value /= 1024;
  }
  return `${value.toPrecision(3)} TiB`;
}

const NUMBERS = new Intl.NumberFormat("en"); // made once: making one takes long
function grouped(number) {
  return NUMBERS.format(number);
}

function count(number, one, many) {
  return `${grouped(number)} ${number === 1 ? one : many || `${one}s`}`;
}

function percent(part, whole) {
  const share = whole ? (100 * part) / whole : 0;
  return share && share < 1 ? "<1 %" : `${Math.round(share)} %`;
}

function tally(items, key) {
  const found = new Map();
  for (const item of items) found.set(key(item), (found.get(key(item)) || 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1]);
}
