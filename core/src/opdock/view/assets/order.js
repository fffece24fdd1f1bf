// In which order the children of a box stand, from above to below: so that little points upward.
// Scopes may need each other both ways; then the order is that of Eades, Lin and Smyth's greedy
// heuristic, by how many edges there are.
function greedyOrder(children, edges) {
  const links = new Map(children.map((box) => [box, { ins: new Map(), outs: new Map() }]));
  for (const { pair: [a, b], count: many } of edges) {
    const { outs } = links.get(a), { ins } = links.get(b);
    outs.set(b, (outs.get(b) || 0) + many);
    ins.set(a, (ins.get(a) || 0) + many);
  }
  const left = new Set([...children].sort((a, b) => a.first - b.first));
  const head = [], tail = [];
  const take = (box) => {
    left.delete(box);
    const { ins, outs } = links.get(box);
    for (const other of ins.keys()) links.get(other).outs.delete(box);
    for (const other of outs.keys()) links.get(other).ins.delete(box);
  };
  const takeAll = (test, put) => {
    for (let again = true; again;) {
      again = false;
      for (const box of [...left]) {
        if (!test(links.get(box))) continue;
        put(box);
        take(box);
        again = true;
      }
    }
  };
  while (left.size) {
    takeAll((link) => !link.ins.size, (box) => head.push(box));
    takeAll((link) => !link.outs.size, (box) => tail.unshift(box));
    if (!left.size) break;
    let best = null, most = -Infinity;
    for (const box of left) {
      const { ins, outs } = links.get(box);
      const gain = sumOf(outs) - sumOf(ins);
      if (gain > most) [best, most] = [box, gain];
    }
    head.push(best);
    take(best);
  }
  return new Map([...head, ...tail].map((box, i) => [box, i]));
}

function sumOf(map) {
  let sum = 0;
  for (const value of map.values()) sum += value;
  return sum;
}
