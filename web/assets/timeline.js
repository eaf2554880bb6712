// The charts of the overview: live bytes by class, site or space; pauses; allocation rate.
import { h, go, get, notice, bytes, count, plural, share, clock, short } from './lib.js';
import { Timeline } from './charts.js';

let rows = [],
  watched = null, // as in the overview
  now = null, // the timeline on the page
  mode = null, // of the first chart
  markKeys = [], // legend of the marks
  loading = null; // the promise of the first chart

// overhead is how long heapcam made the pause of a collection, in nanoseconds.
export const overhead = c => c.probe_ns + (c.sync_ns || 0);

const buckets = 160; // of the chart of pauses

// paused sums the pauses up over so many parts of the time that is shown. Each is a share of its part.
function paused(times) {
  return (from, to) => {
    const x = [],
      gc = [],
      own = [],
      w = (to - from) / buckets;
    const a = new Float64Array(buckets),
      b = new Float64Array(buckets);
    const add = (sums, start, end) => {
      for (let i = Math.max(0, Math.floor((start - from) / w)); i < buckets; i++) {
        const lo = from + i * w;
        if (lo >= end) break;
        sums[i] += Math.max(0, Math.min(end, lo + w) - Math.max(start, lo));
      }
    };
    rows.forEach((c, i) => {
      const long = c.pause_ns / 1e9,
        mine = Math.min(overhead(c) / 1e9, long);
      add(b, times[i], times[i] + mine);
      add(a, times[i] + mine, times[i] + long);
    });
    for (let i = 0; i < buckets; i++) {
      x.push(from + i * w);
      own.push(Math.min(1, b[i] / w));
      gc.push(Math.min(1, a[i] / w));
    }
    return { x, values: [own, gc] };
  };
}

// The curves of the first chart: what its areas are.
const modes = { class: 'by class', site: 'by allocation site', space: 'by space' };
const modeBy = { class: 'type', site: 'site(1)' };
const modeOf = params =>
  watched || !rows.some(c => c.known) ? 'space' : modes[params.get('live')] ? params.get('live') : 'class';

// switcher is the group of buttons that choose the areas.
function switcher(now) {
  if (watched || !rows.some(c => c.known)) return null;
  return h(
    'span',
    { class: 'switch', role: 'group', 'aria-label': 'Areas' },
    Object.entries(modes).map(([m, t]) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': String(m === now),
          click: () => go('overview', { live: m === 'class' ? null : m }),
        },
        t,
      ),
    ),
  );
}

// limit is the maximum heap as a chart shows it; above says that it is far above the data.
function limit(max, peak) {
  if (!max) return null;
  return { value: max, above: max > 4 * peak };
}
const limitKey = l =>
  l &&
  (l.above
    ? h('span', { class: 'sub' }, `maximum heap: ${bytes(l.value)}, above this chart`)
    : h('span', { class: 'key kmax dash' }, `maximum heap: ${bytes(l.value)}`));

// spaces is the first chart, by the spaces of the heap, which the report has.
function spaces(data, now) {
  const of = f => rows.map(f);
  const l = limit(data.report.max_heap_bytes, Math.max(...of(c => c.used_bytes)));
  return {
    mode: now,
    title:
      'Heap used after each collection' +
      (now === 'space' || data.early
        ? ''
        : ` by space. The chart ${modes[now]} follows when all is read.`),
    format: bytes,
    binary: true,
    stacked: true,
    height: 220,
    limit: l,
    extra: [limitKey(l), switcher('space')].filter(Boolean),
    series: [
      { name: watched ? 'heap' : 'old', class: 'c0', values: of(c => c.old_bytes), kind: 'area' },
      { name: 'humongous', class: 'c4', values: of(c => c.humongous_bytes), kind: 'area' },
      { name: 'survivor', class: 'c1', values: of(c => c.survivor_bytes), kind: 'area' },
      { name: 'eden', class: 'c5', values: of(c => c.eden_bytes), kind: 'area' },
    ].filter(s => s.values.some(v => v)),
  };
}

const areas = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c8', 'c9', 'c10'];
// largest is the first chart: the ten largest groups over the window, and the rest.
function largest(data, t, now) {
  const x = t.at.map(i => Date.parse(t.collections[i].time) / 1000);
  ascend(x);
  const total = t.at.map(i => t.collections[i].bytes);
  const rest = total.map((b, i) => Math.max(0, b - t.rows.reduce((s, r) => s + r.bytes[i], 0)));
  const l = limit(data.report.max_heap_bytes, Math.max(...total));
  const names = t.rows.map(r => r.path.at(-1) || '(none)');
  const brief = names.map(n =>
    now === 'class' ? short(n) : n.replace(/^(?:[\w$]+\.)*(?=[\w$]+\.[\w$<>]+)/, ''),
  );
  return {
    title:
      `Heap ${modes[now]} after each collection (garbage counts until it is collected)` +
      (t.rows.some(r => r.estimated) ? ' (estimated from samples)' : ''),
    format: bytes,
    binary: true,
    stacked: true,
    height: 220,
    x,
    limit: l,
    extra: [limitKey(l), switcher(now)].filter(Boolean),
    series: [
      ...t.rows.map((r, i) => ({
        name: names[i],
        label: brief.indexOf(brief[i]) === brief.lastIndexOf(brief[i]) ? brief[i] : names[i],
        class: areas[i],
        values: r.bytes,
        kind: 'area',
      })),
      { name: 'the rest', class: 'c7', values: rest, kind: 'area' },
    ],
  };
}

// areasOf loads what the first chart shows, unless it is there or is being loaded.
export function areasOf(line, data, params) {
  const areas = modeOf(params);
  if (areas !== mode) {
    mode = areas;
    loading = load(line, data, areas);
  }
  return loading;
}

async function load(line, data, areas) {
  if (areas === 'space') {
    if (line.plots[0].chart.mode !== areas) line.replaceFirst(marked(spaces(data, areas)));
    return;
  }
  let t;
  try {
    t = await get('trend', { by: modeBy[areas], largest: 1 }, 'areas');
  } catch (e) {
    if (e.name !== 'AbortError') notice('Cannot show the live bytes ' + modes[areas] + ': ' + e.message);
    return;
  }
  if (line !== now || mode !== areas || !t.collections.length) return;
  line.replaceFirst(marked(largest(data, t, areas)));
}

// marked adds the legend of the marks to a chart.
const marked = chart => ({ ...chart, extra: [...chart.extra, ...markKeys.map(k => k.cloneNode(true))] });

// ascend makes times ascend, as a chart needs it.
function ascend(times) {
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
}

// draw makes the charts of the overview, and returns their timeline.
export function draw(box, data, params, collections, samples, choose) {
  [rows, watched, mode] = [collections, samples, null];
  const r = data.report;
  const times = rows.map(c => Date.parse(c.time) / 1000);
  ascend(times);
  const dt = i => (i ? times[i] - times[i - 1] : 0);
  const marks = [];
  for (const x of data.incidents) {
    const i = rows.findIndex(c => c.gc >= x.last_gc);
    marks.push({ index: i < 0 ? rows.length - 1 : i, class: 'c3' });
  }
  const keys = [data.incidents.length ? h('span', { class: 'key k3 line' }, 'incident') : null];
  if (r.heap_full) {
    const i = rows.findIndex(c => c.gc >= r.heap_full.gc);
    if (i >= 0) marks.push({ index: i, class: 'bad', wide: 3 });
    keys.push(h('span', { class: 'key kbad line' }, 'the heap was full'));
  }
  const at = f => times.filter((_, i) => f(rows[i]));
  const ticks = [
    { name: 'Full collections', label: 'full GC', class: 'c3', times: at(c => ['full', 'major'].includes(c.kind)) },
    { name: 'Sync points', label: 'sync point', term: 'sync point', class: 'c2', times: at(c => c.sync_point) },
    {
      name: 'Lost or missed collections, or heap state unknown',
      label: 'no data',
      class: 'c4',
      times: at(
        c => c.lost_epochs || c.missed_collections || (!c.known && !c.partial && !watched && !data.early),
      ),
    },
  ].filter(t => t.times.length);
  // Collections that begin within 5 ms, such as the two cycles of a major collection, or within about two pixels have
  // one rate: two that are close together would make a spike.
  const least = Math.max(0.005, (times.at(-1) - times[0]) / 500);
  let carried = 0,
    waited = 0,
    last = null;
  const rate = rows.map((c, i) => {
    if (c.allocated_bytes === null || !dt(i)) return null;
    carried += c.allocated_bytes;
    waited += dt(i);
    if (waited < least) return last;
    last = carried / waited;
    carried = waited = 0;
    return last;
  });
  const sorted = rate.filter(v => v !== null).sort((a, b) => a - b);
  const clip = sorted[Math.floor(0.99 * (sorted.length - 1))] || 0,
    highest = sorted.at(-1) || 0;
  const first = spaces(data, modeOf(params));
  first.extra.push(...keys.filter(Boolean));
  const line = new Timeline(
    box,
    times,
    [
      first,
      {
        title: 'GC pauses as a share of the time',
        format: share,
        stacked: true,
        height: 110,
        build: paused(times),
        series: [
          { name: 'heapcam’s part', class: 'c3', kind: 'steps', values: [] },
          { name: 'collector', class: 'c0', kind: 'steps', values: [] },
        ],
      },
      {
        title: 'Allocation rate',
        binary: true,
        format: n => bytes(n) + '/s',
        height: 100,
        extra:
          highest > 1.05 * clip
            ? [h('span', { class: 'sub' }, `the chart ends at ${bytes(clip)}/s; highest rate ${bytes(highest)}/s`)]
            : [],
        series: [
          {
            name: 'allocated',
            class: 'c1',
            values: rate.map(v => (v === null ? null : Math.min(v, clip))),
            kind: 'line',
          },
        ],
      },
    ].filter(c => c.series.length),
    { choose, marks, ticks, label: plural(rows.length, 'collection') },
  );
  markKeys = keys.filter(Boolean);
  line.describeAt = i => `collection ${count(rows[i].gc)}, ${clock(rows[i].time, true)}, ${rows[i].kind}: `;
  now = line;
  return line;
}

