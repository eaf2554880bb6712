// Overview: a summary of the recording, and its timeline, on which the reader selects collections.
import { h, go, address, bytes, count, plural, span, when, clock, facts, prose, term } from './lib.js';
import { hero, kinds, link, told } from './hero.js';
import { draw, areasOf, overhead } from './timeline.js';
import { name } from './ask.js';

let line = null,
  rows = [],
  early = false, // the recording is still being read
  // what is known of a JVM whose objects have no address (ZGC, Shenandoah, Epsilon); null: it has them
  watched = null,
  picked,
  table,
  parent;

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

// reading takes the place of the hero until the report is there: it says what is known so far.
const reading = heads =>
  h(
    'section',
    { class: 'hero', id: 'reading' },
    h('p', { class: 'verdict' }, h('b', {}, 'Reading '),
      'The pauses are shown below. heapcam still reads the heap states. Then it shows whether the program leaks, and ' +
        'which classes live.'),
    h('ul', { id: 'so-far', 'aria-live': 'polite' }, soFar(heads)),
  );
const soFar = heads => heads.map(x => h('li', {}, h('b', {}, (kinds[x.kind] || 'So far') + ' '), told(x)));

// say shows what is known so far, while the recording is read.
export function say(heads) {
  document.getElementById('so-far')?.replaceChildren(...soFar(heads));
}

// It shows an early answer too.
export const soon = true;

export function show(main, data, params) {
  parent = main;
  const r = data.report;
  rows = r.collections;
  watched = r.watched || null;
  early = !!data.early;
  if (early) {
    const charts = h('div', { id: 'early' });
    picked = h('div', { class: 'panel' });
    main.append(h('h2', { class: 'sr' }, 'Summary'), reading(data.headlines), charts, picked);
    if (rows.length < 2) {
      single(charts);
      return null;
    }
    line = draw(charts, data, params, rows, watched, choose);
    return update(data, params);
  }
  // the first headline and that about frequent collections are in the hero
  const storm = data.headlines.slice(1).find(x => x.kind === 'storm');
  const heads = h(
    'ul',
    { class: 'cards', id: 'headlines' },
    data.headlines.slice(1).filter(x => x !== storm).map(x => h('li', { class: x.kind }, h('b', {}, kinds[x.kind]),
      h('a', { href: link(x.view) }, prose(x.text.replace(/^(Leak|Suspected leak|Full heap): /, ''))))),
    data.incidents.filter(x => x.auto).slice(-3).map(saved),
  );
  main.append(h('h2', { class: 'sr' }, 'Summary'), hero(data, storm), heads);
  if (!rows.length) {
    main.append(damage(r) || '');
    return;
  }
  if (watched) {
    const known = [
      h(
        'p',
        { class: 'quiet' },
        `With ${r.collector} heapcam records only samples. It does not know which classes live, nor how many objects.`,
      ),
      sites('Allocation sites with the most live bytes at the end (estimated from watched samples)', r.sites),
      sites('Allocation sites that allocated most (estimated from all samples)', watched.allocated),
    ];
    main.append(...known.filter(Boolean));
  }
  const charts = h('div', { id: 'timeline' });
  picked = h('div', { class: 'panel', id: 'picked', 'aria-live': 'polite' });
  main.append(charts, picked);
  if (rows.length > 1) line = draw(charts, data, params, rows, watched, choose);
  else single(charts);
  main.append(
    h('h3', {}, 'Recording'),
    facts([
      ['JVM', r.jvm + ', ' + r.collector],
      ['Window', h('span', {}, when(r.from), ' to ', when(r.to), ` (${span(r.window_ns)})`)],
      ['Collections', `${count(rows.length)} (${count(rows[0].gc)} to ${count(rows[rows.length - 1].gc)})`],
      ['GC pauses', `${span(r.pause_ns)} in total`],
      watched
        ? ['Watched samples', `${count(watched.samples)} of ${count(r.samples)}: ${count(watched.live)} live, ` +
            `${count(watched.undecided)} not decided yet`]
        : null,
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

// saved is an incident that was kept because something happened.
const saved = x =>
  h('li', { class: 'incident' }, h('b', {}, 'Incident'), when(x.created), ': ', prose(x.reason),
    `. heapcam saved the recording up to then as ${x.id} (collections ${count(x.first_gc)} to ${count(x.last_gc)}).`);

// single takes the place of the charts of a recording with one collection.
function single(charts) {
  charts.append(h('p', { class: 'quiet' }, 'Charts over time need two collections. This recording has one.'));
  picked.replaceChildren(one(rows[0]));
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
      h('thead', {}, h('tr', {}, heads.map((t, i) => h('th', { scope: 'col', class: i < 3 ? 'n' : null }, t)))),
      h('tbody', {}, all.slice(0, 10).map(row)),
    ),
  );
}

const place = f => `${f.class}.${f.method}` + (f.line ? `(${f.file}:${f.line})` : '');

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

const added = 'Time by which heapcam made GC pauses longer';

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
      'Click in a chart to select a collection. Hold Shift and drag to select two. Drag to zoom in, and double-click ' +
        'to show all again. With the keyboard: press Tab until a chart has the focus. Then an arrow key selects a ' +
        'collection, with Shift a range. + and − zoom.',
    );
  }
  return areasOf(line, data, params);
}

const unknown = () => (early ? 'not read yet' : 'heap state unknown');

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
      ['Part added by heapcam', span(overhead(c)), added],
      ['Heap used', `${bytes(c.before_bytes)} → ${bytes(c.used_bytes)}`],
      watched
        ? null
        : ['Live', c.known ? `${plural(c.objects, 'object')}, ${bytes(c.bytes)}` : unknown()],
      c.sync_point ? [term('Sync point', 'sync point'), 'yes'] : null,
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
      ['Part added by heapcam', span(sum(overhead)), added],
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
              ['Added by heapcam', 1],
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
