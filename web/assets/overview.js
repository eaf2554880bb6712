// Overview: a summary of the recording, and its timeline, on which the reader selects collections.
import {
  h,
  go,
  get,
  notice,
  address,
  bytes,
  count,
  plural,
  share,
  span,
  when,
  clock,
  facts,
  frame,
  prose,
  short,
} from './lib.js';
import { Timeline } from './charts.js';
import { name } from './ask.js';

let line = null,
  rows = [],
  // what is known of a JVM whose objects have no address (ZGC, Shenandoah, Epsilon); null: it has them
  watched = null,
  picked,
  mode = null, // of the first chart
  markKeys = [],
  loading = null, // the promise of the first chart
  table,
  parent;

// The word before a headline, by its kind.
const kinds = {
  leak: 'Leak',
  suspect: 'Possible leak',
  growth: 'Growth',
  storm: 'Frequent GC',
  gap: 'Missing data',
  damage: 'Damage',
  quiet: 'Leak check',
  empty: 'No data',
};

// hero is what a reader needs first: does the program leak; what, where, who holds it, since when and until when; and
// what heapcam itself cost.
function hero(data) {
  const r = data.report,
    v = r.verdicts[0],
    first = data.headlines[0];
  const kind = first?.kind || 'empty';
  const exhausted = r.heap_full;
  const until = exhausted?.until_end
    ? h('span', {}, when(exhausted.time), ' (the heap was full)')
    : h('span', {}, when(r.to), ', the end of the recording');
  const own = v?.site.find(f => !/^(java|javax|jdk|sun|com\.sun|kotlin|scala)\./.test(f.class)) || v?.site[0];
  const c = r.cost,
    stopped = c.probe_ns + c.sync_ns + c.walks_ns;
  return h(
    'section',
    { class: 'hero ' + kind, id: 'hero' },
    h('p', { class: 'verdict' }, v ? null : h('b', {}, kinds[kind] + ' '), prose(v ? v.sentence : first?.text || '')),
    v
      ? facts([
          ['What', r.verdicts[0].members?.map(m => m.class).filter((c, i, a) => a.indexOf(c) === i).slice(0, 3)
            .join(', ') || v.class],
          ['Where', own ? frame(own) : 'allocation site unknown'],
          [
            'Held by',
            v.held_by ||
              h('span', { class: 'quiet' }, 'not recorded (', h('code', {}, 'heapcam references JVM'), ' records it)'),
          ],
          ['Since', h('span', {}, when(v.onset_from), Date.parse(v.onset_from) - Date.parse(r.from) < 1000
            ? ', the start of the recording' : '')],
          ['Until', until],
        ])
      : null,
    h(
      'p',
      { class: 'bar' },
      h('a', { class: 'button', href: address('leaks') }, v ? 'Evidence and stack' : 'What was checked'),
      v ? h('a', { class: 'button', href: address('state', { by: 'site, type', at: null }) }, 'Heap by code') : null,
      h(
        'span',
        { class: 'quiet', id: 'cost' },
        c.span_ns
          ? `heapcam itself took ${share((stopped + c.sampling_ns) / c.span_ns)} of the time: ${span(stopped)} in ` +
              `pauses and ${span(c.sampling_ns)} for sampling.`
          : '',
      ),
    ),
  );
}

// skeleton is the page while the recording is read.
export const skeleton = () =>
  h(
    'div',
    { id: 'skeleton' },
    h('h2', {}, 'Summary'),
    h(
      'p',
      { class: 'quiet' },
      'heapcam reads the recording. The answer to “does it leak?”, the live bytes over time, the pauses and the ' +
        'allocation rate appear here.',
    ),
    h('div', { class: 'ghost' }),
    h('div', { class: 'ghost low' }),
    h('div', { class: 'ghost low' }),
  );

export function show(main, data, params) {
  parent = main;
  const r = data.report;
  rows = r.collections;
  watched = r.watched || null;
  mode = null;
  // the first headline is in the hero
  const heads = h(
    'ul',
    { class: 'cards', id: 'headlines' },
    data.headlines.slice(1).map(x => h('li', { class: x.kind }, h('b', {}, kinds[x.kind]),
      h('a', { href: link(x.view) }, prose(x.text)))),
  );
  main.append(h('h2', { class: 'sr' }, 'Summary'), hero(data), heads);
  if (!rows.length) {
    main.append(
      h('p', { class: 'quiet' }, 'Without a collection there is no heap state to show.'),
      damage(r),
    );
    return;
  }
  const probe = r.probe_ns / (r.window_ns || 1);
  if (watched) {
    const known = [
      h(
        'p',
        { class: 'quiet' },
        `With ${r.collector} heapcam records samples only: which classes live, and how many objects, is not known.`,
      ),
      sites('Allocation sites with the most live bytes at the end (estimated from watched samples)', r.sites),
      sites('Allocation sites that allocated most (estimated from all samples)', watched.allocated),
    ];
    main.append(...known.filter(Boolean));
  }
  const charts = h('div', { id: 'timeline' });
  picked = h('div', { class: 'panel', id: 'picked', 'aria-live': 'polite' });
  main.append(charts, picked);
  draw(charts, data, params);
  main.append(
    h('h3', {}, 'Recording'),
    facts([
      ['JVM', r.jvm + ', ' + r.collector],
      ['Window', h('span', {}, when(r.from), ' to ', when(r.to), ` (${span(r.window_ns)})`)],
      ['Collections', `${count(rows.length)} (${count(rows[0].gc)} to ${count(rows[rows.length - 1].gc)})`],
      ['GC pauses', `${span(r.pause_ns)} in total`],
      watched
        ? ['Watched samples', `${count(watched.samples)} of ${count(r.samples)}: ${count(watched.live)} live, ` +
            `${count(watched.undecided)} undecided`]
        : null,
      ['heapcam overhead', `${span(r.probe_ns)}, ${share(probe)} of the window`, added],
      ['End', r.end],
    ]),
  );
  table = h(
    'details',
    {
      id: 'table',
      toggle: () => {
        if (table.open) list();
      },
    },
    h('summary', {}, 'Table of all collections'),
    h('div', {}),
  );
  main.append(table);
  return update(data, params);
}

// sites is a table of the first allocation sites, which are estimates with their intervals.
function sites(title, all) {
  if (!all.length) return null;
  const row = s =>
    h(
      'tr',
      {},
      h('td', { class: 'n' }, bytes(s.bytes)),
      h('td', { class: 'n' }, `${bytes(s.bytes_low)} to ${bytes(s.bytes_high)}`),
      h('td', { class: 'n' }, count(s.samples)),
      h('td', { class: 'name' }, s.class + ' at ' + (s.site.length ? place(s.site[0]) : 'an unknown site')),
    );
  const heads = ['Bytes', '95 % interval', 'Samples', 'Class and allocation site'];
  return h(
    'details',
    { class: 'watched', open: true },
    h('summary', {}, title),
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, heads.map(t => h('th', {}, t)))),
      h('tbody', {}, all.slice(0, 10).map(row)),
    ),
  );
}

const place = f => `${f.class}.${f.method}` + (f.line ? `(${f.file}:${f.line})` : '');

// link is the address of the view that a headline names.
function link(view) {
  const [v, q] = view.split('?');
  return address(v, Object.fromEntries(new URLSearchParams(q || '')));
}

function damage(r) {
  if (!r.damage.length) return null;
  return h(
    'details',
    {},
    h('summary', {}, plural(r.damage.length, 'damaged section')),
    h(
      'ul',
      {},
      r.damage.slice(0, 100).map(d => h('li', { class: 'name' }, d)),
    ),
  );
}

// overhead is how long heapcam made the pause of a collection, in nanoseconds.
const overhead = c => c.probe_ns + (c.sync_ns || 0);
const added = 'Time that heapcam added to GC pauses';

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
    title: 'Heap used after each collection',
    format: bytes,
    binary: true,
    stacked: true,
    height: 220,
    limit: l,
    extra: [limitKey(l), switcher(now)].filter(Boolean),
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
  const brief = names.map(n => (now === 'class' ? short(n) : n.replace(/^(?:[\w$]+\.)*(?=[\w$]+\.[\w$<>]+)/, '')));
  return {
    title: `Live bytes ${modes[now]}` + (t.rows.some(r => r.estimated) ? ' (estimated from samples)' : ''),
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
function areasOf(data, params) {
  const now = modeOf(params);
  if (now !== mode) {
    mode = now;
    loading = load(data, now);
  }
  return loading;
}

async function load(data, now) {
  const mine = line;
  if (now === 'space') {
    if (line.plots[0].chart.mode !== now) line.replaceFirst(marked(spaces(data, now)));
    return;
  }
  let t;
  try {
    t = await get('trend', { by: modeBy[now], largest: 1 }, 'areas');
  } catch (e) {
    if (e.name !== 'AbortError') notice('Cannot show the live bytes ' + modes[now] + ': ' + e.message);
    return;
  }
  if (line !== mine || mode !== now || !t.collections.length) return;
  line.replaceFirst(marked(largest(data, t, now)));
}

// marked adds the legend of the marks to a chart.
const marked = chart => ({ ...chart, extra: [...chart.extra, ...markKeys.map(k => k.cloneNode(true))] });

// ascend makes times ascend, as a chart needs it.
function ascend(times) {
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
}

function draw(box, data, params) {
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
    { name: 'Sync points', label: 'sync point', class: 'c2', times: at(c => c.sync_point) },
    {
      name: 'Lost or missed collections, or heap state unknown',
      label: 'no data',
      class: 'c4',
      times: at(c => c.lost_epochs || c.missed_collections || (!c.known && !c.partial && !watched)),
    },
  ].filter(t => t.times.length);
  const rate = rows.map((c, i) => (c.allocated_bytes === null || !dt(i) ? null : c.allocated_bytes / dt(i)));
  const sorted = rate.filter(v => v !== null).sort((a, b) => a - b);
  const clip = sorted[Math.floor(0.99 * (sorted.length - 1))] || 0,
    highest = sorted.at(-1) || 0;
  const first = spaces(data, modeOf(params));
  first.extra.push(...keys.filter(Boolean));
  line = new Timeline(
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
          highest > clip
            ? [h('span', { class: 'sub' }, `cut at ${bytes(clip)}/s (99th percentile); highest ${bytes(highest)}/s`)]
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
}

function choose(a, b) {
  if (a === b) go('overview', { at: rows[a].gc, from: null, to: null });
  else go('overview', { from: rows[a].gc, to: rows[b].gc, at: null });
}

const index = gc => (gc ? rows.findIndex(c => String(c.gc) === gc) : -1);
// where is the index of a collection that the address names by number, or as first or last.
const where = gc => (gc === 'first' ? 0 : gc === 'last' ? rows.length - 1 : index(gc));

export function update(data, params) {
  if (!line) return null;
  const a = where(params.get('from')),
    b = where(params.get('to')),
    at = where(params.get('at'));
  if (a >= 0 && b >= 0) {
    line.select(Math.min(a, b), Math.max(a, b));
    picked.replaceChildren(two(rows[a], rows[b]));
  } else if (at >= 0) {
    line.select(at, at);
    picked.replaceChildren(one(rows[at]));
  } else {
    line.select(-1, -1);
    picked.replaceChildren(
      'Drag in a chart to zoom; a double click shows all again. Click to select a collection; drag with Shift to select ' +
        'two. With the keyboard: press Tab until a chart has the focus, then an arrow key, with Shift for a range; + ' +
        'and − zoom.',
    );
  }
  return areasOf(data, params);
}

function one(c) {
  return h(
    'div',
    {},
    h('b', {}, 'Selected: ' + name(c)),
    ' ',
    when(c.time),
    facts([
      ['Kind', c.kind],
      ['Cause', c.cause],
      [c.pauses ? plural(c.pauses, 'pause') : 'Pause', span(c.pause_ns)],
      c.cycle_ns ? ['Concurrent cycle', span(c.cycle_ns)] : null,
      ['heapcam overhead', span(overhead(c)), added],
      ['Heap used', `${bytes(c.before_bytes)} → ${bytes(c.used_bytes)}`],
      watched
        ? null
        : ['Live', c.known ? `${plural(c.objects, 'object')}, ${bytes(c.bytes)}` : 'heap state unknown'],
      c.sync_point ? ['Sync point', 'yes'] : null,
      c.lost_epochs ? ['Lost collections before it', count(c.lost_epochs)] : null,
      c.missed_collections ? ['Missed collections before it', count(c.missed_collections)] : null,
    ]),
    h('a', { href: address('state', { at: c.gc }), id: 'to-state' }, 'Heap state after this collection'),
    ' · ',
    h('a', { href: address('coverage', { at: c.gc }) }, 'Site coverage after this collection'),
  );
}

function two(a, b) {
  const part = rows.slice(rows.indexOf(a), rows.indexOf(b) + 1);
  const sum = f => part.reduce((n, c) => n + f(c), 0);
  return h(
    'div',
    {},
    h('b', {}, `Selected: ${name(a)} to ${name(b)}`),
    facts([
      ['From', when(a.time)],
      ['To', when(b.time)],
      ['Collections', count(part.length)],
      ['GC pauses', span(sum(c => c.pause_ns))],
      ['heapcam overhead', span(sum(overhead)), added],
      ['Heap used', `${bytes(a.used_bytes)} → ${bytes(b.used_bytes)}`],
      a.known && b.known ? ['Live', `${count(a.objects)} → ${count(b.objects)} objects`] : null,
    ]),
    h(
      'a',
      { href: address('diff', { from: a.gc, to: b.gc }), id: 'to-diff' },
      'Diff: what died, survived and was born between them',
    ),
  );
}

const pageRows = 200;
function list(from = 0) {
  const body = h('tbody', {});
  rows
    .slice(from, from + pageRows)
    .forEach(c =>
      body.append(
        h(
          'tr',
          {},
          h(
            'td',
            { class: 'n' },
            h('a', { href: address('overview', { at: c.gc, from: null, to: null }) }, count(c.gc)),
          ),
          h('td', { class: 'n' }, `GC(${c.jvm_gc})`),
          h('td', {}, clock(c.time, true)),
          h('td', {}, c.kind),
          h('td', {}, c.cause),
          h('td', { class: 'n' }, span(c.pause_ns)),
          h('td', { class: 'n' }, span(overhead(c))),
          h('td', { class: 'n' }, bytes(c.used_bytes)),
          h('td', { class: 'n' }, c.known ? count(c.objects) : '–'),
          h(
            'td',
            {},
            [
              c.sync_point ? 'sync point' : '',
              c.lost_epochs ? `${plural(c.lost_epochs, 'lost collection')} before it` : '',
              c.missed_collections ? `${plural(c.missed_collections, 'missed collection')} before it` : '',
              c.known || watched ? '' : 'heap state unknown',
            ]
              .filter(Boolean)
              .join(', '),
          ),
        ),
      ),
    );
  const step = (t, n) => h('button', { type: 'button', disabled: n < 0 || n >= rows.length, click: () => list(n) }, t);
  table.lastElementChild.replaceChildren(
    h(
      'p',
      { class: 'bar' },
      step('Previous', from - pageRows),
      step('Next', from + pageRows),
      `${count(from + 1)} to ${count(Math.min(from + pageRows, rows.length))} of ${count(rows.length)}`,
    ),
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Collections' },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...[
              ['Collection', 1],
              ['In JVM’s log', 1],
              ['Time'],
              ['Kind'],
              ['Cause'],
              ['Pause', 1],
              ['heapcam overhead', 1],
              ['Heap used after', 1],
              ['Live objects', 1],
              ['Notes'],
            ].map(([t, n]) => h('th', { class: n ? 'n' : null, scope: 'col' }, t)),
          ),
        ),
        body,
      ),
    ),
  );
}

export function refresh(data, params) {
  const y = scrollY;
  leave();
  parent.replaceChildren();
  const shown = show(parent, data, params);
  scrollTo(0, y);
  return shown;
}

export function leave() {
  line?.end();
  line = null;
}
