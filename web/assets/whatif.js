// Heap size: what the collections would be with other heaps, as `heapcam whatif` predicts them, and the recorded heap.
import { h, get, bytes, count, span, share, facts, keys, css, prose } from './lib.js';

let box = null,
  watcher = null;

export async function show(main) {
  const mine = (box = {
    fit: h('p', { id: 'fit', 'aria-live': 'polite' }, 'heapcam reads how long objects live. This takes a while …'),
    rest: h('div', {}),
  });
  main.append(h('h2', {}, 'How would another heap size change the time in collections?'), box.fit, box.rest);
  let a;
  try {
    a = await get('whatif', {}, 'whatif');
  } catch (e) {
    if (box !== mine) return;
    if (e.name === 'AbortError') box.fit.textContent = 'Stopped. Open this view again to repeat it.';
    else box.fit.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  if (a.why) {
    box.fit.replaceChildren('heapcam cannot predict other heaps from this recording: ', ...prose(a.why), '.');
    return;
  }
  fill(a.report);
}

// update: the address has nothing that this view shows, but the theme.
export const update = () => box?.draw?.();
// refresh: a prediction stays while the recording grows.
export const refresh = () => {};
export function leave() {
  watcher?.disconnect();
  watcher = box = null;
}

const row = (r, what) => r.check.rows.find(x => x.what === what);
const seconds = s => span(1e9 * s);
const interval = (s, format) => (format(s.low) === format(s.high) ? '' : `${format(s.low)} to ${format(s.high)}`);

function fill(r) {
  const c = r.check,
    time = row(r, 'time in collections'),
    longest = row(r, 'longest pause'),
    missed = c.rows
      .filter(x => Math.abs(x.off) > 0.15)
      .map(x => `${x.what} (${x.off > 0 ? '+' : ''}${Math.round(100 * x.off)} %)`),
    exact = c.fits && missed.length === 0;
  box.fit.replaceChildren(
    exact
      ? 'The model fits this program: it predicts the recorded collections within 15 %.'
      : c.fits
        ? 'The model fits this program in part: it predicts how many collections were recorded, and their time, ' +
          `within 15 %. It misses ${missed.join(', ')}: do not rely on these figures below.`
        : h('b', { class: 'bad' },
            'The model does not fit this program: its prediction of the recorded collections is off by more than ' +
              '15 %. Do not rely on the predictions below.'),
  );
  const plot = h('div', { class: 'plot', id: 'sizes' });
  box.rest.append(
    ...c.reasons.map(x => h('p', {}, h('b', {}, exact ? 'Doubt: ' : 'Cause: '), prose(x), '.')),
    ...r.warnings.map(x => h('p', { class: 'sub' }, h('b', {}, 'Warning: '), prose(x), '.')),
    facts([
      ['Recorded heap', `${bytes(c.recorded.heap)}: ${bytes(c.recorded.young)} young, ${bytes(c.recorded.old)} old`],
      ['Time in collections', `${seconds(time.measured)} measured, ${seconds(time.predicted.value)} predicted`],
      ['Longest pause', `${seconds(longest.measured)} measured, ${seconds(longest.predicted.value)} predicted`],
    ]),
    advice(r),
    plot,
    h('p', { class: 'sub' },
      'A bar is the interval of a prediction: the recording shows only between which collections an object died. ' +
        'All figures are for as much work as was recorded. '),
    table(r),
    h('p', { class: 'sub' }, h('code', {}, 'heapcam whatif'),
      ' predicts other sizes, and names the smallest heap for a goal.'),
  );
  box.draw = () => draw(plot, r, time.measured);
  watcher = new ResizeObserver(() => box?.draw());
  watcher.observe(plot);
}

function advice(r) {
  const a = r.advice;
  if (!a) return '';
  return h('div', { class: 'panel', id: 'advice' },
    h('p', {}, `A heap of ${bytes(a.heap)} would halve the time in collections: from ${seconds(a.before_seconds)} to ` +
      `${seconds(a.after_seconds.value)} (at most ${seconds(a.after_seconds.high)}). Flags for the JVM:`),
    h('p', {}, h('code', { class: 'name' }, a.flags)));
}

// youngs are the sizes of the young generation, each with its colour.
const youngs = r => [...new Set(r.configurations.map(p => p.young))].sort((a, b) => a - b);
const colours = ['c0', 'c1', 'c2', 'c4', 'c5', 'c6', 'c8', 'c9'];
const colourOf = (r, p) => colours[youngs(r).indexOf(p.young) % colours.length];

const disc = (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
const diamond = (x, y, r) => `M${x},${y - r}L${x + r},${y}L${x},${y + r}L${x - r},${y}Z`;

// draw draws heap size, in powers of two, against time in collections.
function draw(to, r, measured) {
  const width = to.clientWidth,
    height = 300,
    left = 64,
    right = 14,
    top = 8,
    bottom = 40;
  if (width < 150) return;
  const shown = r.configurations.filter(p => !p.too_small),
    own = r.check.recorded;
  const sizes = [own.heap, ...shown.map(p => p.heap)].map(Math.log2),
    lo = Math.min(...sizes) - 0.15,
    hi = Math.max(...sizes) + 0.15,
    most = 1.05 * Math.max(measured, own.gc_seconds.high, ...shown.map(p => p.gc_seconds.high)) || 1;
  const x = n => left + ((Math.log2(n) - lo) / (hi - lo)) * (width - left - right),
    y = s => top + (1 - s / most) * (height - top - bottom);
  const ink = css('--ink'),
    parts = [];
  const text = (tx, ty, anchor, t) => parts.push(h('text', { x: tx, y: ty, 'text-anchor': anchor }, t));
  const line = (x1, y1, x2, y2, stroke, wide = 1) =>
    parts.push(h('line', { x1, y1, x2, y2, stroke, 'stroke-width': wide }));
  for (const v of ticks(most)) {
    line(left, y(v), width - right, y(v), css('--grid'));
    text(left - 6, y(v) + 4, 'end', v ? seconds(v) : '0');
  }
  let last = -Infinity;
  for (let p = Math.ceil(lo); p <= hi; p++) {
    const at = x(2 ** p);
    line(at, top, at, height - bottom, css('--grid'));
    if (at - last < 74 || at + 32 > width) continue;
    text((last = at), height - bottom + 16, 'middle', bytes(2 ** p));
  }
  text(width - right, height - 6, 'end', 'Size of the heap');
  const bar = (p, s, stroke, path, label) => {
    const at = x(p.heap);
    line(at, y(s.low), at, y(s.high), stroke, 2);
    for (const end of [s.low, s.high]) line(at - 4, y(end), at + 4, y(end), stroke, 2);
    parts.push(h('path', { d: path(at, y(s.value), 5), fill: stroke, class: 'point' }, h('title', {}, label)));
  };
  for (const p of shown)
    bar(p, p.gc_seconds, css('--' + colourOf(r, p)), disc,
      `${bytes(p.young)} young, ${bytes(p.old)} old: ${seconds(p.gc_seconds.value)} in collections`);
  parts.push(
    h('path', { d: diamond(x(own.heap), y(measured), 8), fill: 'none', stroke: ink, 'stroke-width': 2.5,
      class: 'recorded' }, h('title', {}, `As recorded: ${seconds(measured)} in collections`)),
  );
  const named = youngs(r).map(n => ['k' + colourOf(r, { young: n }).slice(1), `${bytes(n)} young`]);
  to.replaceChildren(
    h('figure', { class: 'chart' },
      h('figcaption', {}, h('b', {}, 'Time in collections'), keys(['kmax', 'recorded, as measured'], ...named)),
      h('svg', { width: String(width), height, viewBox: `0 0 ${width} ${height}`, role: 'img',
        'aria-label': `Heap size against time in collections of ${count(shown.length)} predicted heaps, and of the ` +
          'recorded one. The table has the figures.' }, parts)),
  );
}

// ticks are about four round values from 0 to most.
function ticks(most) {
  const raw = most / 4,
    unit = 10 ** Math.floor(Math.log10(raw)),
    step = unit * [1, 2, 5, 10].find(f => f * unit >= raw);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

function table(r) {
  const c = r.check;
  const measured = what => row(r, what).measured;
  const cells = list => list.map(([v, n, title]) => h('td', { class: n ? 'n' : 'name', title }, v));
  const wall = r.seconds || 1;
  const recorded = h('tr', { 'aria-current': 'true' }, cells([
    ['as recorded, measured'], [bytes(c.recorded.heap), 1], [bytes(c.recorded.young), 1], [bytes(c.recorded.old), 1],
    [count(measured('young collections')), 1], [count(measured('full collections')), 1],
    [seconds(measured('time in collections')), 1], ['–', 1], [share(measured('time in collections') / wall), 1],
    [seconds(measured('longest pause')), 1],
  ]));
  const heads = ['', 'Heap', 'Young', 'Old', 'Young GCs', 'Full GCs', 'Time in GC', 'Interval', 'Share', 'Longest'];
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Predicted heaps' },
    h('table', { id: 'heaps' },
      h('thead', {}, h('tr', {}, heads.map((t, i) => h('th', { scope: 'col', class: i ? 'n' : null },
        t || h('span', { class: 'sr' }, 'Kind'))))),
      h('tbody', {}, recorded, ...r.configurations.map(p => h('tr', {}, cells(
        p.too_small
          ? [['too small'], [bytes(p.heap), 1], [bytes(p.young), 1], [bytes(p.old), 1],
              ...Array.from({ length: 6 }, () => ['–', 1])]
          : [
              [p.pareto && c.fits ? 'no smaller heap is as fast' : 'predicted', 0,
                p.pareto && c.fits ? 'No other one has both a smaller heap and less time in collections.' : null],
              [bytes(p.heap), 1], [bytes(p.young), 1], [bytes(p.old), 1],
              [count(p.young_collections.value), 1, interval(p.young_collections, count)],
              [count(p.full_collections.value), 1, interval(p.full_collections, count)],
              [seconds(p.gc_seconds.value), 1], [interval(p.gc_seconds, seconds) || '–', 1],
              [share(p.gc_share.value), 1], [seconds(p.longest_pause_seconds.value), 1],
            ]))))));
}
