// The timeline: charts over the time of the window, with one cursor, one selection and one zoom for all. They need
// uPlot, which index.html loads.
import { h, css, clock, count, bytes, span, keys, visible, go, state, term, win } from './lib.js';

const { uPlot } = window;
const colour = c => css('--' + c);

const pad = v => [0, v > 0 ? v * 1.05 : 1];
const powers = Array.from({ length: 50 }, (_, i) => 2 ** i);
const tens = Array.from({ length: 60 }, (_, i) => +`${[1, 2, 5][i % 3]}e${Math.floor(i / 3) - 6}`);
const left = 92; // width of the axis with the figures, in pixels
const axes = (format, binary) => [
  {
    size: 26,
    gap: 2,
    incrs: [
      0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200,
      14400, 43200, 86400, 604800,
    ],
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
    size: left,
    space: 24,
    incrs: binary ? powers : tens, // not 2.5, of which a figure with one digit would be wrong
  },
];

// Timeline draws charts over times, which are those of the collections, in seconds. A chart is { title, format, series:
// [{ name, class: 'c0', values, kind: 'area'|'line'|'bars'|'steps' }], stacked, limit, max }. Its values are at times,
// or at its own x; build(from, to) returns { x, values } for a zoom. choose is called with the first and last index of
// a selection, which are equal after a click. A mark, a vertical line, is { index, class, dash }. ticks are rows of a
// thin strip below the first chart: { name, label, class, times, term }; term is the row of label in the glossary.
// A drag zooms, a double click shows all again, and a drag with Shift selects two collections. The zoom is in the
// address.
export class Timeline {
  constructor(parent, times, charts, { choose, marks = [], ticks = [], label }) {
    Object.assign(this, { times, choose, marks, charts, ticks, chosen: [-1, -1], plots: [] });
    this.parent = parent;
    this.sync = uPlot.sync('t' + Math.random());
    this.label = label;
    this.shown = this.range();
    for (const c of charts) this.add(c);
    this.resize = new ResizeObserver(() => {
      this.plots.forEach(p => p.u.setSize({ width: p.box.clientWidth, height: p.height }));
    });
    this.plots.forEach(p => this.resize.observe(p.box));
  }

  // range is the time that is shown.
  range() {
    const w = win(),
      a = this.times[0],
      b = Math.max(this.times.at(-1), a + 0.001);
    const from = Math.max(a, w ? w[0] : a),
      to = Math.min(b, w ? w[1] : b);
    return to > from ? [from, to] : [a, b];
  }

  add(chart) {
    chart.series = chart.series.map(s => ({ ...s, name: visible(s.name) }));
    const height = chart.height || 130;
    this.fill(chart);
    const box = h('div', { class: 'plot', role: 'img', tabindex: '0', 'aria-label': this.describe(chart) });
    const read = h('span', { class: 'sub read' });
    const figure = h(
      'figure',
      { class: 'chart' },
      h(
        'figcaption',
        {},
        h('b', {}, chart.title),
        keys(
          ...chart.series.map(s => [
            'k' + s.class.slice(1) + (s.kind === 'line' ? ' line' : ''),
            s.label || s.name,
            s.name,
          ]),
        ),
        ...(chart.extra || []),
      ),
      box,
    );
    this.parent.append(figure);
    const plot = { box, height, chart, read, figure };
    this.plots.push(plot);
    this.plot(plot);
    box.addEventListener('keydown', e => this.key(e));
    if (this.plots.length === 1 && this.ticks.length) {
      this.lines = h('div', { class: 'strips' });
      box.after(this.lines);
    }
    figure.append(read);
  }

  // fill gives the chart the values of the time that is shown.
  fill(chart) {
    if (!chart.build) return;
    const b = chart.build(...this.shown);
    chart.x = b.x;
    chart.series.forEach((s, i) => {
      s.values = b.values[i];
    });
  }

  plot(p) {
    const { chart, box } = p;
    const top = this.top(chart);
    const paths = {
      bars: uPlot.paths.bars({ size: [0.8, 12, 1], align: 0 }),
      steps: uPlot.paths.stepped({ align: 1 }),
    };
    const u = (p.u = new uPlot(
      {
        width: box.clientWidth || 900,
        height: p.height,
        padding: [null, 32, null, null], // for a half of the last time's text
        legend: { show: false },
        cursor: {
          sync: { key: this.sync.key, setSeries: false },
          drag: { x: true, y: false, setScale: false },
          points: { show: false },
          bind: {
            mousedown: (u, t, handler) => e => {
              Object.assign(this, { active: u, shift: e.shiftKey, dragged: false });
              handler(e);
            },
            dblclick: () => () => this.zoom(null),
          },
        },
        scales: {
          x: { time: false, min: this.shown[0], max: this.shown[1] },
          y: {
            range: (u, lo, hi) =>
              chart.max ? [0, chart.max] : top ? [0, top] : pad(Math.max(hi, this.ends(u))),
          },
        },
        axes: axes(chart.format, chart.binary),
        series: [
          {},
          ...this.order(chart).map(s => ({
            label: s.name,
            stroke: colour(s.class),
            width: s.kind === 'bars' ? 0 : 1.2,
            fill: s.kind === 'line' ? null : colour(s.class),
            paths: paths[s.kind] || uPlot.paths.linear(),
            points: { show: this.xs(chart).length < 3 },
            spanGaps: !!s.gaps,
          })),
        ],
        hooks: {
          // uPlot lays a chart out later than it is made or gets its size.
          ready: [() => this.strip()],
          setSize: [() => this.strip()],
          setCursor: [
            u => {
              p.read.textContent = this.readout(chart, u.cursor.idx);
            },
          ],
          setSelect: [u => this.brushed(u)],
          draw: [u => this.overlay(u, chart)],
        },
      },
      [this.xs(chart), ...this.stack(chart)],
      box,
    ));
    u.setScale('x', { min: this.shown[0], max: this.shown[1] });
    u.over.addEventListener('click', e => {
      if (this.dragged || e.detail > 1) return;
      const i = this.nearest(u.posToVal(e.offsetX, 'x'));
      if (e.shiftKey && this.chosen[0] >= 0) this.choose(Math.min(this.chosen[0], i), Math.max(this.chosen[0], i));
      else this.choose(i, i);
    });
  }

  // ends is the largest value just outside of the time that is shown: a line leads there, and must not be cut off.
  ends(u) {
    const [x, ...ys] = u.data,
      [from, to] = this.shown,
      near = (to - from) / 50;
    const at = x.flatMap((t, i) => ((t < from && t >= from - near) || (t > to && t <= to + near) ? [i] : []));
    return at.reduce((m, i) => Math.max(m, ...ys.map(y => y[i] ?? 0)), 0);
  }

  // replaceFirst draws another chart in the place of the first one.
  replaceFirst(chart) {
    const [old, ...others] = this.plots;
    this.resize.unobserve(old.box);
    old.u.destroy();
    old.figure.remove();
    this.plots = [];
    this.add(chart);
    this.parent.prepend(this.plots[0].figure);
    this.resize.observe(this.plots[0].box);
    this.plots.push(...others);
    this.redraw();
  }

  xs(chart) {
    return chart.x || this.times;
  }
  nearest(t) {
    let lo = 0,
      hi = this.times.length - 1;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.times[mid] < t) lo = mid + 1;
      else hi = mid;
    }
    return lo > 0 && t - this.times[lo - 1] < this.times[lo] - t ? lo - 1 : lo;
  }

  // top is the highest figure of a chart with a limit, so that the limit is on it; 0: that of its values.
  top(chart) {
    return chart.limit && !chart.limit.above ? chart.limit.value * 1.05 : 0;
  }

  order(chart) {
    return chart.stacked ? [...chart.series].reverse() : chart.series;
  }
  // stack gives the values that are drawn: sums, the largest first, so that each smaller one is drawn over it.
  stack(chart) {
    if (!chart.stacked) return chart.series.map(s => s.values);
    const sum = new Float64Array(this.xs(chart).length);
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
      `range. Plus and minus zoom, 0 shows all.`
    );
  }

  readout(chart, i) {
    if (i === null || i === undefined || i < 0) return '';
    const figures = chart.series
      .filter(s => !chart.stacked || s.values[i])
      .map(s => `${s.label || s.name} ${s.values[i] === null ? '–' : chart.format(s.values[i])}`);
    const x = this.xs(chart)[i];
    return (chart.x ? `${clock(x * 1000, true)}: ` : this.describeAt(i)) + figures.join(', ');
  }
  describeAt(i) {
    return clock(this.times[i] * 1000, true) + '  ';
  }

  brushed(u) {
    const { left, width } = u.select;
    if (!width) return;
    const range = [left, left + width].map(x => u.posToVal(x, 'x'));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (u !== this.active || width < 4) return; // the other charts show the same selection
    this.dragged = true;
    const [a, b] = range.map(t => this.nearest(t));
    if (this.shift) this.choose(Math.min(a, b), Math.max(a, b));
    else this.zoom(range);
  }

  // zoom shows the time between two moments; null: all.
  zoom(range) {
    go(state().view, { win: range && range.map(t => Math.round(t * 1000)).join('-') });
    this.redraw();
  }
  // redraw shows what the address names, if it has changed.
  redraw() {
    const r = this.range();
    this.shown = r;
    for (const p of this.plots) {
      if (p.chart.build) {
        this.fill(p.chart);
        p.u.setData([this.xs(p.chart), ...this.stack(p.chart)], false);
      }
      p.u.setScale('x', { min: r[0], max: r[1] });
    }
    this.strip();
  }

  // strip draws the thin rows of ticks below the first chart: ticks at the same place are one, which is darker.
  strip() {
    const u = this.plots[0]?.u;
    if (!this.lines || !u) return;
    const [from, to] = this.shown,
      w = Math.max(u.over.clientWidth, 1),
      bin = 3;
    this.lines.replaceChildren(
      ...this.ticks.map(row => {
        const bins = new Map();
        let inside = 0;
        for (const t of row.times) {
          if (t < from || t > to) continue;
          const b = Math.floor(((t - from) / (to - from)) * (w / bin - 1));
          bins.set(b, (bins.get(b) || 0) + 1);
          inside++;
        }
        const most = Math.max(1, ...bins.values());
        return h(
          'div',
          { class: 'strip-row', title: `${row.name}: ${count(inside)}` },
          h('span', { width: left + 'px' }, row.term ? term(row.label, row.term) : row.label),
          h(
            'svg',
            { width: w, height: 8, role: 'img', 'aria-label': `${row.name}: ${count(inside)}` },
            [...bins].map(([b, n]) =>
              h('rect', { x: b * bin, y: 0, width: bin - 1, height: 8, fill: colour(row.class),
                opacity: (0.45 + (0.55 * n) / most).toFixed(2) }),
            ),
          ),
        );
      }),
    );
  }

  overlay(u, chart) {
    const c = u.ctx,
      { left, top, width, height } = u.bbox;
    const x = i => u.valToPos(this.times[i], 'x', true);
    c.save();
    c.beginPath();
    c.rect(left, top, width, height);
    c.clip();
    const line = (x0, y0, x1, y1, class_, dash, wide = 1) => {
      c.strokeStyle = colour(class_);
      c.lineWidth = wide * devicePixelRatio;
      c.setLineDash((dash || []).map(d => d * devicePixelRatio));
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
    };
    if (chart.limit && !chart.limit.above) {
      const y = u.valToPos(chart.limit.value, 'y', true);
      line(left, y, left + width, y, 'ink', [6, 4], 1.5);
    }
    const [a, b] = this.chosen;
    if (a >= 0) {
      c.fillStyle = colour('accent') + '30';
      if (b > a) c.fillRect(x(a), top, x(b) - x(a), height);
      for (const i of a === b ? [a] : [a, b]) line(x(i), top, x(i), top + height, 'accent', null, 2);
    }
    for (const m of this.marks) line(x(m.index), top, x(m.index), top + height, m.class, m.dash, m.wide || 1.5);
    c.restore();
  }

  select(a, b) {
    this.chosen = [a, b];
    if (this.shown.join() !== this.range().join()) this.redraw();
    this.plots.forEach(p => p.u.redraw(false));
  }

  key(e) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[e.key];
    const grow = { '+': 0.5, '=': 0.5, '-': 2 }[e.key];
    if (e.ctrlKey || e.altKey || e.metaKey || (!step && !grow && e.key !== '0')) return;
    e.preventDefault();
    const [a, b] = this.chosen;
    if (e.key === '0') return this.zoom(null);
    if (grow) {
      const [from, to] = this.shown,
        middle = b >= 0 && this.times[b] >= from && this.times[b] <= to ? this.times[b] : (from + to) / 2,
        half = ((to - from) * grow) / 2;
      return this.zoom(half < 0.002 ? [from, to] : [middle - half, middle + half]);
    }
    const n = this.times.length - 1;
    const next = Math.max(0, Math.min(n, (b < 0 ? (step > 0 ? -1 : n + 1) : b) + step));
    if (e.shiftKey && a >= 0) this.choose(Math.min(a, next), Math.max(a, next));
    else this.choose(next, next);
  }

  end() {
    this.resize.disconnect();
    this.plots.forEach(p => p.u.destroy());
  }
}

// spark draws values as a small curve, at times or at equal distances.
export function spark(values, width = 120, height = 22, cls = 'c0', times = null) {
  const v = values.map(x => (x === null ? 0 : x)),
    hi = Math.max(...v, 1e-9),
    lo = Math.min(...v, 0);
  const n = Math.max(v.length - 1, 1),
    long = times ? times.at(-1) - times[0] : 0;
  const x = i => (long > 0 ? ((times[i] - times[0]) * width) / long : (i * width) / n);
  const points = v
    .map(
      (y, i) =>
        `${x(i).toFixed(1)},${(height - 2 - ((y - lo) / (hi - lo || 1)) * (height - 4)).toFixed(1)}`,
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
