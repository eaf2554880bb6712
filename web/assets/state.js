// Heap: the live objects after one collection, as a flame graph of all frames and beside it as a tree table of groups.
import { h, go, get, bytes, count, plural, share, when, save, state, notice, unknown, within } from './lib.js';
import { TreeTable } from './tree.js';
import { Flame } from './flame.js';
import { ask, showFieldError, classifiers, byOf, gcField, lastKnown, name } from './ask.js';

let box,
  data,
  table,
  flames = [],
  open = new Set(),
  shown = '',
  drawn = '',
  turn = 0, // number of the newest update
  read = null; // the version of the recording all of whose states are read

// Questions that readers ask most. Each is a change of the address.
const presets = [
  ['By class', { by: null, order: null }],
  ['By my code', { by: 'site, type', order: null }],
  ['By thread', { by: 'thread, site, type', order: null }],
  ['By age', { by: 'ages, type, site', order: null }],
  ['By holder', { by: 'holder, type', order: null }],
];

// preset goes to a ready-made grouping. Holders are known after one collection only: that of the newest reference
// listing.
async function preset(change) {
  const to = { ...change, zoom: null, part: null, open: null, frame: null };
  if (/holder/.test(change.by)) {
    let r;
    try {
      r = await get('retained', { by: 'object' }, 'listing');
    } catch (e) {
      if (e.name !== 'AbortError') notice(e.message);
      return;
    }
    if (r.none) {
      notice('Who holds an object is not recorded here. “heapcam references JVM” records it while the JVM runs.');
      return;
    }
    to.at = r.gc;
  }
  go('state', to);
}

// While the recording is read the view shows the nearest heap state that is read.
export const soon = true;

// ahead has the server begin to read the heap states: the view asks for one as soon as it knows the collections.
export const ahead = params => get('nearest', { at: params.get('at') }).catch(() => {}); // update gets the error again

export async function show(main, d, params) {
  data = d;
  shown = drawn = '';
  const mine = ++turn,
    list = await classifiers();
  if (turn !== mine) return; // shown anew
  const rows = d.report.collections;
  if (!d.early && !lastKnown(rows)) {
    main.append(
      h('h2', {}, 'Live objects after a collection'),
      h('p', { class: 'quiet' }, unknown(d.report)),
    );
    return;
  }
  box = {
    top: h('div', {}),
    head: h('p', { id: 'head', 'aria-live': 'polite' }),
    crumbs: h('p', { class: 'bar', id: 'crumbs' }),
    ways: h('div', { class: 'bar', id: 'ways' }),
    draw: h('div', { id: 'flame' }),
    table: h('div', { id: 'tree' }),
    list,
  };
  box.search = search(params);
  main.append(
    h('h2', {}, 'Live objects after a collection'),
    box.top,
    box.head,
    h('div', { class: 'cols heap' }, h('div', {}, h('div', { class: 'bar' }, box.search), box.ways, box.draw),
      h('div', {}, box.crumbs, box.table)),
  );
  await update(d, params);
}

// search is the field that finds groups while the reader types.
function search(params) {
  let later = 0;
  const typed = e => {
    const q = e.target.value;
    for (const f of flames) f.find(q ? matcher(q) : null);
    clearTimeout(later);
    later = setTimeout(() => go('state', { q: q || null, open: null }), 400);
  };
  return h(
    'form',
    {
      class: 'bar grow',
      role: 'search',
      submit: e => {
        e.preventDefault();
        clearTimeout(later);
        go('state', { q: e.target.elements.q.value || null, open: null });
      },
    },
    h('label', { for: 'q' }, 'Search'),
    h('input', {
      id: 'q',
      name: 'q',
      type: 'search',
      class: 'grow',
      value: params.get('q') || '',
      placeholder: 'class, method or regular expression',
      input: typed,
    }),
  );
}

const at = params => params.get('at') || (data.early && 'last') ||
  String(lastKnown(within(data.report.collections.filter(c => c.known), params)));
const question = params => ({ at: at(params), by: byOf(params), where: params.get('filter') });
const pathOf = (params, key) => {
  try {
    const z = JSON.parse(params.get(key) || '[]');
    return Array.isArray(z) ? z : [];
  } catch {
    return [];
  }
};
const zoomOf = params => pathOf(params, 'zoom');

export async function update(d, params) {
  data = d;
  if (!box) return;
  try {
    open = new Set(JSON.parse(params.get('open') || '[]'));
  } catch {
    open = new Set();
  }
  const q = question(params),
    find = params.get('q') || '',
    input = box.search.elements.q;
  if (document.activeElement !== input && input.value !== find) input.value = find;
  // The fields are made anew only when their values have changed: text that the reader types must stay.
  const fields = JSON.stringify([q, params.get('order'), data.early]);
  if (box.fields !== fields || !box.top.firstChild) {
    box.fields = fields;
    tops(params, q);
  }
  const mine = ++turn;
  if (data.early && !shown)
    box.head.replaceChildren(
      h('span', { class: 'quiet' }, 'heapcam reads the recording. The first heap state that is read appears here.'),
    );
  if (read !== data.version) {
    let near;
    try {
      near = await get('nearest', { at: q.at }, 'nearest');
    } catch (e) {
      if (e.name === 'AbortError') return;
    }
    if (turn !== mine || !box) return;
    if (near?.all) read = data.version;
    if (near?.gc) {
      const instead = { ...q, at: String(near.gc) };
      const done = await Promise.all([groups(params, instead, find, q.at), graph(params, instead, find, true)]);
      if (turn !== mine || !box || done.includes(false)) return;
    }
  }
  await Promise.all([groups(params, q, find), graph(params, q, find)]);
}

// tops makes the fields above the drawing.
function tops(params, q) {
  const field = document.activeElement,
    focus = field?.id,
    typed = box.early && !data.early ? field?.value : null;
  box.early = data.early;
  const by = params.get('by');
  box.top.replaceChildren(
    h(
      'div',
      { class: 'bar' },
      gcField(data.report.collections, q.at, 'After collection', v => go('state', { at: v }), 'at'),
      h(
        'span',
        { class: 'switch', role: 'group', 'aria-label': 'Ready-made groupings' },
        presets.map(([t, change]) =>
          h(
            'button',
            {
              type: 'button',
              'aria-pressed': String((change.by || null) === by),
              click: () => preset(change),
            },
            t,
          ),
        ),
      ),
      h('span', { class: 'grow' }),
      h('span', { class: 'quiet' }, 'Download'),
      ...[
        ['csv', 'CSV'],
        ['json', 'JSON'],
        ['pprof', 'pprof'],
      ].map(([f, t]) =>
        h(
          'button',
          {
            type: 'button',
            title:
              f === 'pprof' ? 'Download the whole heap state as a pprof profile' : `Download the table as ${t}`,
            click: () => file(f),
          },
          t,
        ),
      ),
      h('button', { type: 'button', title: 'Download the flame graph as an SVG file', click: image }, 'SVG'),
    ),
    ...ask(params, box.list),
  );
  const again = focus ? document.getElementById(focus) : null;
  again?.focus();
  if (again && typed) again.value = typed;
}

// ways makes the switches of the flame graph.
function ways(params, r) {
  const root = params.get('order') !== 'leaf',
    all = params.get('jdk') === '1',
    frame = params.get('frame');
  const press = (t, title, on, change) =>
    h('button', { type: 'button', title, 'aria-pressed': String(on), click: () => go('state', change) }, t);
  const part = pathOf(params, 'part');
  const last = frame || part.at(-1);
  box.ways.replaceChildren(
    ...[
      r.sites && !frame
        ? h(
            'span',
            { class: 'switch', role: 'group', 'aria-label': 'Order of frames' },
            press('Root first', 'Callers above callees', root, { order: null, part: null }),
            press('Leaf first', 'The allocating method above its callers', !root, { order: 'leaf', part: null }),
          )
        : null,
      r.sites
        ? press('All JDK and framework frames', 'Show each frame of the JDK and of frameworks', all, {
            jdk: all ? null : '1',
            part: null,
          })
        : null,
      part.length || frame
        ? h('button', { type: 'button', click: () => go('state', { part: null, frame: null }, false) }, 'Whole heap')
        : null,
      ...(frame ? [] : part).map((k, i) =>
        h(
          'button',
          {
            type: 'button',
            class: 'crumb',
            click: () => go('state', { part: JSON.stringify(part.slice(0, i + 1)) }, false),
          },
          k,
        ),
      ),
      last && !frame && /\(/.test(last)
        ? h(
            'button',
            { type: 'button', id: 'sandwich', click: () => go('state', { frame: last, part: null }, false) },
            'Callers and callees',
          )
        : null,
    ].filter(Boolean),
  );
}

// graph draws the flame graph, or those of the callers and callees of one frame; false if that was stopped. An earlier
// state than the requested one may lack what is asked for.
async function graph(params, q, find, earlier = false) {
  const mine = box,
    part = pathOf(params, 'part'),
    frame = params.get('frame');
  const ask = {
    ...q,
    order: params.get('order') === 'leaf' ? 'leaf' : 'root',
    fold: params.get('jdk') === '1' ? null : 1,
    path: part.length && !frame ? JSON.stringify(part) : null,
    frame,
  };
  const key = JSON.stringify([ask, document.documentElement.dataset.theme]);
  const matches = find ? matcher(find) : null;
  if (key === drawn) {
    for (const f of flames) if (f.match !== matches) f.find(matches);
    return;
  }
  let r;
  try {
    r = await get('flame', ask, 'flame');
  } catch (e) {
    if (e.name === 'AbortError') return false;
    if (box === mine && !e.field && !earlier)
      box.draw.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  drawn = key;
  ways(params, r);
  flames.forEach(f => f.end());
  flames = [];
  box.draw.replaceChildren();
  const add = (title, label, tree, base, up) => {
    if (title) box.draw.append(h('h3', {}, title));
    const f = new Flame(box.draw, {
      label,
      total: r.heap_bytes,
      up,
      aside: n => go('state', { frame: n.key, part: null }, false),
      pick: frame
        ? (p, n) => go('state', { frame: n.key }, false)
        : p => go('state', { part: p.length ? JSON.stringify(p) : null }, false),
    });
    f.match = matches;
    f.show(tree, base);
    flames.push(f);
  };
  if (frame) {
    add(`Callers of ${frame}`, `Callers of ${frame}, outermost on top`, r.callers, [], true);
    add('What it calls, and what is allocated there', `Callees of ${frame}`, r.tree, []);
  } else add('', 'Live bytes. Arrow keys move, Enter zooms in, s shows callers and callees.', r.tree, part);
}

// groups shows the table; false if that was stopped. waited is the collection in whose place this one is shown.
async function groups(params, q, find, waited = null) {
  const mine = box,
    zoom = zoomOf(params);
  const key = JSON.stringify([q, zoom, find, params.get('tz')]);
  if (key === shown) {
    table?.render();
    return;
  }
  let r;
  try {
    r = await get('group', { ...q, path: zoom.length ? JSON.stringify(zoom) : null, find }, 'group');
    if (box !== mine) return;
  } catch (e) {
    if (e.name === 'AbortError') return false;
    if (box !== mine) return;
    if (!showFieldError(e) && !waited) box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  shown = key;
  showFieldError(null);
  box.head.replaceChildren(
    waited
      ? h('b', { id: 'waits' }, (isNaN(waited) ? 'The recording' : `Collection ${count(waited)}`) +
          ' is still being read. This is an earlier state. ')
      : '',
    `After ${name(r)}, `,
    when(r.time),
    `: ${plural(r.objects, 'live object')}, ${bytes(r.bytes)}. ` +
      (r.exact
        ? 'All figures are exact.'
        : 'Figures marked ~ are estimated from samples; the column Precision shows their 95 % interval.') +
      (r.hits === undefined
        ? ''
        : ` ${plural(r.hits, 'group')} ${r.hits === 1 ? 'matches' : 'match'} the search` +
          (r.shown < r.hits ? `; the largest ${count(r.shown)} are shown.` : '.')),
  );
  box.crumbs.replaceChildren(
    ...(zoom.length
      ? [
          h('button', { type: 'button', click: () => go('state', { zoom: null }) }, 'All groups'),
          ...zoom.map((k, i) =>
            h(
              'button',
              {
                type: 'button',
                class: 'crumb',
                click: () => go('state', { zoom: JSON.stringify(zoom.slice(0, i + 1)) }),
              },
              k,
            ),
          ),
        ]
      : []),
  );
  const matches = find ? matcher(find) : null;
  const all = r.bytes || 1;
  box.table.replaceChildren();
  table = new TreeTable(box.table, {
    label: 'Groups',
    open,
    rowClass: n => (matches?.(n.key) ? 'hit' : null),
    changed: () => go('state', { open: open.size ? JSON.stringify([...open]) : null }),
    enter: p => go('state', { zoom: JSON.stringify(p) }, false),
    more: async (p, skip) => (await get('group', { ...q, path: JSON.stringify(p), skip })).tree,
    columns: [
      { title: 'Objects', numeric: true, cell: n => (n.estimated ? '~' : '') + count(n.objects) },
      {
        title: 'Bytes',
        numeric: true,
        cell: n => h('span', { title: count(n.bytes) }, (n.estimated ? '~' : '') + bytes(n.bytes)),
      },
      {
        title: 'Share',
        numeric: true,
        cell: n => h('span', { class: 'share' }, share(n.bytes / all)),
      },
      { title: 'Precision', cell: precision },
    ],
  });
  table.show(r.tree, zoom, r.hits !== undefined);
}

// precision says whether a row is exact, or the range of its estimate.
function precision(n) {
  if (!n.estimated) return 'exact';
  return h(
    'span',
    { class: 'sub', title: `${count(n.objects_low)} to ${count(n.objects_high)} objects (95 % interval)` },
    `${bytes(n.bytes_low)} to ${bytes(n.bytes_high)}, ${plural(n.samples || 0, 'sample')}`,
  );
}

// matcher says which names a search finds. A text that is no regular expression is searched for as it is.
function matcher(find) {
  let re;
  try {
    re = new RegExp(find, 'i');
  } catch {
    return k => k.toLowerCase().includes(find.toLowerCase());
  }
  return k => re.test(k);
}

async function file(format) {
  const p = state().params,
    zoom = zoomOf(p);
  const q = new URLSearchParams({
    format,
    ...Object.fromEntries(
      Object.entries({ ...question(p), path: zoom.length ? JSON.stringify(zoom) : null, find: p.get('q') }).filter(
        ([, v]) => v,
      ),
    ),
  });
  const r = await fetch('api/export?' + q);
  if (!r.ok) {
    notice('Export failed: ' + (await r.json()).error);
    return;
  }
  save(/filename="([^"]+)"/.exec(r.headers.get('Content-Disposition'))?.[1] || 'heapcam.' + format, await r.blob());
}

// image downloads the flame graph as an SVG file that does not need the page's style sheet.
function image() {
  const svg = box.draw.querySelector('svg').cloneNode(true);
  svg.setAttribute('width', svg.getAttribute('viewBox').split(' ')[2]);
  svg.querySelectorAll('text').forEach(t => {
    t.setAttribute('font-size', '11');
    t.setAttribute('font-family', 'sans-serif');
  });
  svg.querySelectorAll('rect').forEach(t => t.setAttribute('stroke', '#ffffff'));
  save(
    `${data.title.replace(/\.heapcam$/, '')}-gc${at(state().params)}.svg`,
    new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' }),
  );
}

export function leave() {
  flames.forEach(f => f.end());
  flames = [];
  box = table = null;
  shown = drawn = '';
}
// refresh updates the view of a recording that grows. A collection that the address names stays selected.
export async function refresh(d, params) {
  data = d;
  if (!box || !lastKnown(d.report.collections)) {
    leave();
    const main = document.getElementById('main').firstElementChild;
    main.replaceChildren();
    await show(main, d, params);
    return;
  }
  await update(d, params);
}
