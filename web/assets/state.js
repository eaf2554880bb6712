// Heap state: the live objects after one collection, grouped by any list of classifiers, as an icicle and a tree table.
import { h, go, get, bytes, count, plural, share, when, save, state, notice } from './lib.js';
import { TreeTable, icicle } from './tree.js';
import { ask, showFieldError, classifiers, byOf, gcField, lastKnown, name } from './ask.js';

let box,
  data,
  table,
  open = new Set(),
  shown = '';

export async function show(main, d, params) {
  data = d;
  shown = '';
  const list = await classifiers();
  const rows = d.report.collections;
  if (!lastKnown(rows)) {
    main.append(
      h('h2', {}, 'Heap state after a collection'),
      h('p', { class: 'quiet' }, 'The heap state is unknown after every collection of this recording.'),
    );
    return;
  }
  box = {
    top: h('div', {}),
    head: h('p', { id: 'head', 'aria-live': 'polite' }),
    crumbs: h('p', { class: 'bar', id: 'crumbs' }),
    draw: h('div', { id: 'icicle' }),
    table: h('div', { id: 'tree' }),
    list,
  };
  main.append(h('h2', {}, 'Heap state after a collection'), box.top, box.head, box.crumbs, box.draw, box.table);
  await update(d, params);
}

const at = params => params.get('at') || String(lastKnown(data.report.collections));
const question = params => ({ at: at(params), by: byOf(params), where: params.get('filter') });
const zoomOf = params => {
  try {
    const z = JSON.parse(params.get('zoom') || '[]');
    return Array.isArray(z) ? z : [];
  } catch {
    return [];
  }
};

export async function update(d, params) {
  data = d;
  if (!box) return;
  const mine = box;
  try {
    open = new Set(JSON.parse(params.get('open') || '[]'));
  } catch {
    open = new Set();
  }
  const q = question(params),
    zoom = zoomOf(params),
    find = params.get('q') || '';
  // The fields are made anew only when their values have changed: text that the reader types must stay.
  const fields = JSON.stringify([q, find]);
  if (box.fields !== fields || !box.top.firstChild) {
    box.fields = fields;
    const focus = document.activeElement?.id;
    box.top.replaceChildren(
      h(
        'div',
        { class: 'bar' },
        gcField(data.report.collections, q.at, 'After collection', v => go('state', { at: v }), 'at'),
        h(
          'form',
          {
            class: 'bar grow',
            role: 'search',
            submit: e => {
              e.preventDefault();
              go('state', { q: e.target.elements.q.value, open: null });
            },
          },
          h('label', { for: 'q' }, 'Search'),
          h('input', {
            id: 'q',
            name: 'q',
            type: 'search',
            class: 'grow',
            value: find,
            placeholder: 'part of a name or a regular expression',
          }),
        ),
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
                f === 'pprof'
                  ? 'Download the whole heap state as a pprof profile'
                  : `Download the table as ${t}`,
              click: () => file(f),
            },
            t,
          ),
        ),
        h('button', { type: 'button', title: 'Download the chart as an SVG file', click: image }, 'SVG'),
      ),
      ...ask(params, box.list),
    );
    if (focus) document.getElementById(focus)?.focus();
  }
  const key = JSON.stringify([q, zoom, find, document.documentElement.dataset.theme, params.get('tz')]);
  if (key === shown) {
    table?.render();
    return;
  }
  const path = zoom.length ? JSON.stringify(zoom) : null;
  let r, drawn;
  try {
    [r, drawn] = await Promise.all([
      get('group', { ...q, path, find }, 'group'),
      get('group', { ...q, path, draw: 1 }, 'draw'),
    ]);
    if (box !== mine) return;
  } catch (e) {
    if (e.name === 'AbortError' || box !== mine) return;
    if (!showFieldError(e)) box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  shown = key;
  showFieldError(null);
  box.head.replaceChildren(
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
          h('button', { type: 'button', click: () => go('state', { zoom: null }) }, 'Whole heap'),
          ...zoom.map((k, i) =>
            h(
              'button',
              { type: 'button', click: () => go('state', { zoom: JSON.stringify(zoom.slice(0, i + 1)) }) },
              k,
            ),
          ),
        ]
      : []),
  );
  const matches = find ? matcher(find) : null;
  const all = r.bytes || 1;
  box.draw.replaceChildren(
    icicle(drawn.tree, {
      base: zoom,
      label: 'Bytes by group, outermost level on top. Enter zooms into a group.',
      hit: matches,
      pick: p => go('state', { zoom: p.length ? JSON.stringify(p) : null }, false),
      text: n => `${n.key}: ${bytes(n.bytes)} (${share(n.bytes / all)}), ${plural(n.objects, 'object')}`,
    }),
  );
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
        cell: n => [
          h(
            'span',
            { class: 'meter', 'aria-hidden': 'true' },
            h('i', { width: ((100 * n.bytes) / all).toFixed(1) + '%' }),
          ),
          h('span', { class: 'share' }, share(n.bytes / all)),
        ],
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
    { title: `${count(n.objects_low)} to ${count(n.objects_high)} objects (95 % interval)` },
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

// image downloads the icicle as an SVG file that does not need the page's style sheet.
function image() {
  const svg = box.draw.querySelector('svg').cloneNode(true);
  svg.setAttribute('width', '1600');
  svg.querySelectorAll('text').forEach(t => t.setAttribute('font', '11px sans-serif'));
  svg.querySelectorAll('text').forEach(t => {
    t.setAttribute('font-size', '11');
    t.setAttribute('font-family', 'sans-serif');
    t.removeAttribute('font');
  });
  svg.querySelectorAll('rect').forEach(t => t.setAttribute('stroke', '#ffffff'));
  save(
    `${data.title.replace(/\.heapcam$/, '')}-gc${at(state().params)}.svg`,
    new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' }),
  );
}

export function leave() {
  box = table = null;
  shown = '';
}
// refresh updates the view of a recording that grows. A collection that the address names stays selected.
export async function refresh(d, params) {
  data = d;
  if (!box) {
    const main = document.getElementById('main').firstElementChild;
    main.replaceChildren();
    await show(main, d, params);
    return;
  }
  await update(d, params);
}
