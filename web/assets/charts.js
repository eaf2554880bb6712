// The timeline: charts over the time of the window, with one cursor and one selection for all. They need uPlot, which
// index.html loads.
import { h, css, clock, count, bytes, span, keys, visible } from './lib.js';

const { uPlot } = window;
const colour = c => css('--' + c);

const pad = v => [0, v > 0 ? v * 1.05 : 1];
const powers = Array.from({ length: 50 }, (_, i) => 2 ** i);
const wide = Array.from({ length: 12 }, (_, i) => [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600].at(i));
const axes = (format, binary) => [
  {
    size: 26,
    gap: 2,
    incrs: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...wide, 7200, 14400, 43200, 86400, 604800],
    stroke: colour('soft'),
    grid: { stroke: colour('grid'), width: 1 },
    ticks: { stroke: colour('line') },
    values: (u, v) => v.map(t => clock(t * 1000, v.length > 1 && v[1] - v[0] < 1)),
    space: 110,
  },
  {
    stroke: colour('soft'),
    grid: { stroke: colour('grid'), width: 1 },
    ticks: { stroke: colour('line') },
    values: (u, v) => v.map(format),
    size: 84,
    space: 24,
    ...(binary ? { incrs: powers } : {}),
  },
];

// Timeline draws charts. A chart is { title, format, series: [{ name, class: 'c0', values, kind: 'area'|'line'|'bars'
// }], stacked }. choose is called with the first and last index of a selection, which are equal after a click. A mark,
// a vertical line, is { index, class, dash }.
export class Timeline {
  constructor(parent, times, charts, { choose, marks = [], label }) {
    Object.assign(this, { times, choose, marks, charts, chosen: [-1, -1], plots: [] });
    this.parent = parent;
    this.sync = uPlot.sync('t' + Math.random());
    this.label = label;
    for (const c of charts) this.add(c);
    this.resize = new ResizeObserver(() =>
      this.plots.forEach(p => p.u.setSize({ width: p.box.clientWidth, height: p.height })),
    );
    this.plots.forEach(p => this.resize.observe(p.box));
  }

  add(chart) {
    chart.series = chart.series.map(s => ({ ...s, name: visible(s.name) }));
    const height = chart.height || 130;
    const box = h('div', { class: 'plot', role: 'img', tabindex: '0', 'aria-label': this.describe(chart) });
    const read = h('span', { class: 'sub' });
    this.parent.append(
      h(
        'figure',
        { class: 'chart' },
        h(
          'figcaption',
          {},
          h('b', {}, chart.title),
          keys(...chart.series.map(s => ['k' + s.class.slice(1), s.name])),
          ...(chart.extra || []),
          read,
        ),
        box,
      ),
    );
    const data = [this.times, ...this.stack(chart)];
    const bars = uPlot.paths.bars({ size: [0.8, 12, 1], align: 0 });
    const step = uPlot.paths.linear();
    const u = new uPlot(
      {
        width: box.clientWidth || 900,
        height,
        legend: { show: false },
        cursor: {
          sync: { key: this.sync.key, setSeries: false },
          drag: { x: true, y: false, setScale: false },
          points: { show: false },
        },
        scales: { x: { time: false }, y: { range: (u, lo, hi) => (chart.max ? [0, chart.max] : pad(hi)) } },
        axes: axes(chart.format, chart.binary),
        series: [
          {},
          ...this.order(chart).map(s => ({
            label: s.name,
            stroke: colour(s.class),
            width: s.kind === 'bars' ? 0 : 1.2,
            fill: s.kind === 'line' ? null : colour(s.class),
            paths: s.kind === 'bars' ? bars : step,
            points: { show: this.times.length < 3 },
            spanGaps: !!s.gaps,
          })),
        ],
        hooks: {
          setCursor: [
            u => {
              read.textContent = this.readout(chart, u.cursor.idx);
            },
          ],
          setSelect: [u => this.brushed(u)],
          draw: [u => this.overlay(u)],
        },
      },
      data,
      box,
    );
    u.over.addEventListener('click', e => {
      const i = u.posToIdx(e.offsetX);
      if (!this.dragged) this.choose(i, i);
      this.dragged = false;
    });
    box.addEventListener('keydown', e => this.key(e));
    this.plots.push({ u, box, height, chart });
  }

  order(chart) {
    return chart.stacked ? [...chart.series].reverse() : chart.series;
  }
  // stack gives the values that are drawn: sums, the largest first, so that each smaller one is drawn over it.
  stack(chart) {
    if (!chart.stacked) return chart.series.map(s => s.values);
    const sum = new Float64Array(this.times.length);
    const out = chart.series.map(s => Array.from(s.values, (v, i) => (v === null ? null : (sum[i] += v))));
    return out.reverse();
  }

  describe(chart) {
    const parts = chart.series.map(s => {
      const v = s.values.filter(x => x !== null);
      return v.length
        ? `${s.name}: first ${chart.format(v[0])}, last ${chart.format(v[v.length - 1])}, highest ` +
            `${chart.format(v.reduce((a, b) => Math.max(a, b)))}`
        : `${s.name}: no data`;
    });
    return (
      `${chart.title}, ${this.label}. ${parts.join('; ')}. Arrow keys select a collection; with Shift they select a ` +
      `range.`
    );
  }

  readout(chart, i) {
    if (i === null || i === undefined || i < 0) return '';
    return (
      this.describeAt(i) +
      chart.series.map(s => `${s.name} ${s.values[i] === null ? '–' : chart.format(s.values[i])}`).join(', ')
    );
  }
  describeAt(i) {
    return clock(this.times[i] * 1000, true) + '  ';
  }

  brushed(u) {
    if (u.select.width < 4) return;
    this.dragged = true;
    const from = u.valToIdx(u.posToVal(u.select.left, 'x')),
      to = u.valToIdx(u.posToVal(u.select.left + u.select.width, 'x'));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.choose(Math.min(from, to), Math.max(from, to));
  }

  overlay(u) {
    const c = u.ctx,
      { left, top, width, height } = u.bbox;
    const x = i => u.valToPos(this.times[i], 'x', true);
    c.save();
    c.beginPath();
    c.rect(left, top, width, height);
    c.clip();
    const [a, b] = this.chosen;
    if (a >= 0) {
      c.fillStyle = colour('accent') + '30';
      if (b > a) c.fillRect(x(a), top, x(b) - x(a), height);
      c.strokeStyle = colour('accent');
      c.lineWidth = 2 * devicePixelRatio;
      for (const i of a === b ? [a] : [a, b]) {
        c.beginPath();
        c.moveTo(x(i), top);
        c.lineTo(x(i), top + height);
        c.stroke();
      }
    }
    for (const m of this.marks) {
      c.strokeStyle = colour(m.class);
      c.fillStyle = colour(m.class);
      c.lineWidth = devicePixelRatio;
      if (m.dash) c.setLineDash(m.dash.map(d => d * devicePixelRatio));
      else c.setLineDash([]);
      const at = x(m.index);
      c.beginPath();
      c.moveTo(at, top);
      c.lineTo(at, top + height);
      c.stroke();
    }
    c.restore();
  }

  select(a, b) {
    this.chosen = [a, b];
    this.plots.forEach(p => p.u.redraw(false));
  }

  key(e) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[e.key];
    if (!step) return;
    e.preventDefault();
    const n = this.times.length - 1;
    const [a, b] = this.chosen;
    const next = Math.max(0, Math.min(n, (b < 0 ? (step > 0 ? -1 : n + 1) : b) + step));
    if (e.shiftKey && a >= 0) this.choose(Math.min(a, next), Math.max(a, next));
    else this.choose(next, next);
  }

  end() {
    this.resize.disconnect();
    this.plots.forEach(p => p.u.destroy());
  }
}

// spark draws values as a small curve.
export function spark(values, width = 120, height = 22, cls = 'c0') {
  const v = values.map(x => (x === null ? 0 : x)),
    hi = Math.max(...v, 1e-9),
    lo = Math.min(...v, 0);
  const n = Math.max(v.length - 1, 1);
  const points = v
    .map(
      (y, i) =>
        `${((i * width) / n).toFixed(1)},${(height - 2 - ((y - lo) / (hi - lo || 1)) * (height - 4)).toFixed(1)}`,
    )
    .join(' ');
  return h(
    'svg',
    {
      class: 'spark',
      width: width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: 'img',
      'aria-label': `from ${count(Math.round(v[0] || 0))} to ${count(Math.round(v[v.length - 1] || 0))}`,
    },
    h('polyline', { points, fill: 'none', stroke: colour(cls), 'stroke-width': '1.5' }),
  );
}

export { bytes, span };
