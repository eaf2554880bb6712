// Overview: a summary of the recording, and its timeline, on which the reader selects collections.
import { h, go, address, bytes, count, plural, share, span, when, clock, facts } from './lib.js';
import { Timeline } from './charts.js';
import { name } from './ask.js';

let line = null,
  rows = [],
  // what is known of a JVM whose objects have no address (ZGC, Shenandoah, Epsilon); null: it has them
  watched = null,
  picked,
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

export function show(main, data, params) {
  parent = main;
  const r = data.report;
  rows = r.collections;
  watched = r.watched || null;
  const heads = h(
    'ul',
    { class: 'cards', id: 'headlines' },
    data.headlines.map(x =>
      h(
        'li',
        { class: x.kind },
        h('b', {}, kinds[x.kind]),
        h('a', { href: link(x.view) }, x.text),
        x.since ? [' Growing since ', when(x.since), ', the start of the window.'] : null,
      ),
    ),
  );
  if (!rows.length) {
    main.append(
      h('h2', {}, 'Summary'),
      heads,
      h('p', { class: 'quiet' }, 'Without a collection there is no heap state to show.'),
      damage(r),
    );
    return;
  }
  const probe = r.probe_ns / (r.window_ns || 1);
  main.append(
    h('h2', {}, 'Summary'),
    heads,
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
  picked = h('div', { class: 'panel', id: 'picked', 'aria-live': 'polite' });
  main.append(picked);
  const charts = h('div', { id: 'timeline' });
  main.append(charts);
  draw(charts, data);
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
  update(data, params);
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

// withAddresses are the charts of what is not known where objects have no address.
const coverage = 'Site coverage: share of live bytes whose allocation site is known';
const withAddresses = ['Live objects', coverage];

function draw(box, data) {
  const times = rows.map(c => Date.parse(c.time) / 1000);
  // The times of a chart must ascend.
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
  const of = f => rows.map(f);
  const dt = i => (i ? times[i] - times[i - 1] : 0);
  const pauseKinds = [
    ['young', 'c0'],
    ['mixed', 'c2'],
    ['full', 'c3'],
    ['minor', 'c0'],
    ['major', 'c3'],
    ['other', 'c7'],
  ];
  const kind = c => (['young', 'mixed', 'full', 'minor', 'major'].includes(c.kind) ? c.kind : 'other');
  const total = c =>
    c.coverage.exact_bytes + c.coverage.inferred_bytes + c.coverage.before_recording_bytes + c.coverage.unknown_bytes;
  const part = k => of(c => (c.known && total(c) ? c.coverage[k] / total(c) : null));
  const marks = [];
  rows.forEach((c, i) => {
    if (c.lost_epochs || c.missed_collections || (!c.known && !watched))
      marks.push({ index: i, class: 'c4', dash: [2, 3] });
    else if (c.sync_point) marks.push({ index: i, class: 'c2', dash: [6, 4] });
  });
  for (const x of data.incidents) {
    const i = rows.findIndex(c => c.gc >= x.last_gc);
    marks.push({ index: i < 0 ? rows.length - 1 : i, class: 'c3' });
  }
  const dash = [
    h('span', { class: 'key k2' }, 'dashed line: sync point'),
    h('span', { class: 'key k4' }, 'dotted line: lost or missed collection, or heap state unknown'),
    data.incidents.length ? h('span', { class: 'key k3' }, 'solid line: incident') : null,
  ];
  line = new Timeline(
    box,
    times,
    [
      {
        title: 'Heap used after each collection',
        format: bytes,
        binary: true,
        stacked: true,
        height: 180,
        extra: dash,
        series: [
          { name: watched ? 'heap' : 'old', class: 'c0', values: of(c => c.old_bytes), kind: 'area' },
          { name: 'humongous', class: 'c4', values: of(c => c.humongous_bytes), kind: 'area' },
          { name: 'survivor', class: 'c1', values: of(c => c.survivor_bytes), kind: 'area' },
          { name: 'eden', class: 'c5', values: of(c => c.eden_bytes), kind: 'area' },
        ].filter(s => s.values.some(v => v)),
      },
      {
        title: 'Live objects',
        format: n => count(Math.round(n)),
        height: 90,
        series: [{ name: 'objects', class: 'c2', values: of(c => (c.known ? c.objects : null)), kind: 'line' }],
      },
      {
        title: 'Allocation rate',
        binary: true,
        format: n => bytes(n) + '/s',
        height: 100,
        series: [
          {
            name: 'allocated',
            class: 'c1',
            values: of((c, i) => (c.allocated_bytes === null || !dt(i) ? null : c.allocated_bytes / dt(i))),
            kind: 'line',
          },
        ],
      },
      {
        title: 'GC pauses',
        format: span,
        height: 110,
        series: [
          ...pauseKinds
            .map(([k, cls]) => ({
              name: k,
              class: cls,
              values: of(c => (kind(c) === k ? c.pause_ns : null)),
              kind: 'bars',
            }))
            .filter(s => s.values.some(v => v !== null)),
          { name: 'heapcam overhead', class: 'c6', values: of(overhead), kind: 'bars' },
        ],
      },
      {
        title: coverage,
        format: share,
        stacked: true,
        height: 90,
        max: 1,
        series: [
          { name: 'exact', class: 'c2', values: part('exact_bytes'), kind: 'area' },
          { name: 'before the recording', class: 'c7', values: part('before_recording_bytes'), kind: 'area' },
          { name: 'inferred', class: 'c5', values: part('inferred_bytes'), kind: 'area' },
          { name: 'unknown', class: 'c1', values: part('unknown_bytes'), kind: 'area' },
        ],
      },
    ].filter(c => c.series.length && !(watched && withAddresses.includes(c.title))),
    { choose, marks, label: plural(rows.length, 'collection') },
  );
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
  if (!line) return;
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
      'Click a chart to select a collection; drag to select a range. With the keyboard: press Tab until a chart has ' +
        'the focus, then an arrow key; hold Shift to select a range.',
    );
  }
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
  show(parent, data, params);
  scrollTo(0, y);
}

export function leave() {
  line?.end();
  line = null;
}
