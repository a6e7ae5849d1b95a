// One row of one head's attention, recomputed from its queries and keys (Vaswani et al. 2017, eq. 1):
// weights = softmax(q k / sqrt(d_head) + bias), hidden keys left out; a row that is wholly hidden has weights of 0.
// Next: readout.js.

// Sums are taken in float64 from the model's float32 numbers; the gaps say how far the model's own results lie from them.
export function recompute(explain, row) {
  const { query, key, keys, size, divisor, bias } = explain;
  const first = row * keys;
  const dots = new Float64Array(keys);
  const scores = new Float64Array(keys);
  const allowed = Array.from({ length: keys }, (_, col) => Number.isFinite(explain.masked_scores[first + col]));
  for (let col = 0; col < keys; col += 1) {
    let dot = 0;
    for (let k = 0; k < size; k += 1) dot += query[row * size + k] * key[col * size + k];
    dots[col] = dot;
    scores[col] = dot / divisor + (bias ? bias[first + col] : 0);
  }
  const greatest = scores.reduce((most, score, col) => (allowed[col] ? Math.max(most, score) : most), -Infinity);
  const raised = Float64Array.from(scores, (score, col) => (allowed[col] ? Math.exp(score - greatest) : 0));
  const sum = raised.reduce((total, value) => total + value, 0);
  const weights = raised.map((value) => (sum > 0 ? value / sum : 0));
  let scoreGap = 0;
  let weightGap = 0;
  let rowSum = 0;
  for (let col = 0; col < keys; col += 1) {
    scoreGap = Math.max(scoreGap, Math.abs(scores[col] - explain.scores[first + col]));
    weightGap = Math.max(weightGap, Math.abs(weights[col] - explain.weights[first + col]));
    rowSum += explain.weights[first + col];
  }
  return { dots, scores, allowed, greatest, raised, sum, weights, scoreGap, weightGap, rowSum };
}

// The largest entries of a row (or column) as [index, value], the largest first.
export function largest(count, value, most = 5) {
  const entries = Array.from({ length: count }, (_, index) => [index, value(index)]).filter((entry) => !Number.isNaN(entry[1]));
  return entries.sort((a, b) => b[1] - a[1]).slice(0, most);
}
