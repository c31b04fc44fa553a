// In which order points are drawn, and where there is room for more than a dot.

// Whether a place is at least so far, left or right and up or down, from all that were free before.
function room(distance) {
  const taken = new Map();
  const cell = (value) => Math.floor(value / distance);
  return (x, y) => {
    for (let i = -1; i <= 1; i++) {
      for (let j = -1; j <= 1; j++) {
        const other = taken.get(`${cell(x) + i} ${cell(y) + j}`);
        if (other && Math.abs(other[0] - x) < distance && Math.abs(other[1] - y) < distance) return false;
      }
    }
    taken.set(`${cell(x)} ${cell(y)}`, [x, y]);
    return true;
  };
}

// The same order on every visit.
function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
