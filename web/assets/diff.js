// Diff: what died, stayed and was born between two collections, as bars by group (ICPE'18, Figure 14), and as a flame
// graph coloured by change. With two recordings it is the page of compare.js unless the address says otherwise.
import {
  h,
  go,
  get,
  bytes,
  count,
  plural,
  change,
  when,
  save,
  state,
  notice,
  unknown,
  within,
  mayFill,
} from './lib.js';
import { TreeTable } from './tree.js';
import { ask, showFieldError, classifiers, gcField, name } from './ask.js';
import { net, bars, figures, range, Changes } from './change.js';
import * as two from './compare.js';

let box,
  data,
  table,
  graph, // of changes
  turn = 0, // counts the calls of show: the newest fills the page
  shown = '';

const paired = (d, params) => Boolean(d.before) && params.get('pair') !== '0';
const title = 'What changed between two collections';

const known = () => {
  const k = data.report.collections.filter(c => c.known);
  return k.length ? within(k) : k;
};
const question = params => ({
  from: params.get('from') || String(known()[0].gc),
  to: params.get('to') || String(known().at(-1).gc),
  by: params.get('by') || 'type',
  where: params.get('filter'),
});

export async function show(main, d, params) {
  data = d;
  shown = '';
  if (paired(d, params) && ++turn) return two.show(main, d, params);
  const mine = ++turn;
  const list = (await classifiers()).filter(c => c.name !== 'address');
  if (mine !== turn) return;
  if (!known().length) {
    main.append(
      h('h2', {}, title),
      h('p', { class: 'quiet' }, unknown(d.report)),
    );
    return;
  }
  box = {
    top: h('div', {}),
    head: h('div', { id: 'head', 'aria-live': 'polite' }),
    draw: h('section', { id: 'changes' }),
    table: h('div', { id: 'diff' }),
    list,
  };
  graph = new Changes(box.draw, 'diff');
  main.append(h('h2', {}, title), two.choice(d, false), box.head, box.top, box.draw, box.table);
  await update(d, params);
}

export async function update(d, params) {
  data = d;
  if (paired(d, params) !== !box) return remake(d, params);
  if (!box) return two.update(d, params);
  const mine = box;
  let open = new Set();
  try {
    open = new Set(JSON.parse(params.get('open') || '[]'));
  } catch {
    /* the link was cut off */
  }
  const q = question(params),
    unit = params.get('unit') === 'objects' ? 'objects' : 'bytes';
  const fields = JSON.stringify([q, unit]);
  if (box.fields !== fields) {
    box.fields = fields;
    const focus = document.activeElement?.id;
    box.top.replaceChildren(
      h(
        'div',
        { class: 'bar' },
        gcField(data.report.collections, q.from, 'From collection', v => go('diff', { from: v }), 'from'),
        gcField(data.report.collections, q.to, 'to', v => go('diff', { to: v }), 'to'),
        h(
          'button',
          {
            type: 'button',
            'aria-pressed': String(unit === 'objects'),
            title: 'Show numbers of objects instead of bytes',
            click: () => go('diff', { unit: unit === 'objects' ? null : 'objects' }),
          },
          'Count objects',
        ),
        h('span', { class: 'grow' }),
        h('span', { class: 'quiet' }, 'Download'),
        ...['csv', 'json'].map(f => 
          h(
            'button',
            { type: 'button', title: `Download the diff as ${f.toUpperCase()}`, click: () => file(f) },
            f.toUpperCase(),
          ),
        ),
      ),
      ...ask(params, box.list, 'type'),
    );
    if (focus) document.getElementById(focus)?.focus();
  }
  const key = JSON.stringify([q, unit, params.get('tz')]);
  const drawn = draw(params);
  if (key === shown) return drawn;
  let r;
  try {
    r = await get('diff', q, 'diff');
    if (box !== mine) return;
  } catch (e) {
    if (e.name === 'AbortError' || box !== mine) return;
    if (!showFieldError(e)) box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  shown = key;
  showFieldError(null);
  const t = r.tree[unit],
    show = unit === 'bytes' ? bytes : count;
  box.head.replaceChildren(
    net(r.tree),
    h(
      'p',
      { class: 'sub' },
      `From ${name(r.from)}, `,
      when(r.from.time),
      `, to ${name(r.to)}, `,
      when(r.to.time),
      '.',
      r.identity_lost
        ? ` Because of full collections in between, heapcam does not know of ${plural(r.identity_lost, 'object')} ` +
            `whether they stayed or were born. So some figures are ranges; a whisker shows the range.`
        : '',
      r.from.gc === r.to.gc ? ' This is one collection, so nothing changed. Choose another one to compare.' : '',
      mayFill(r),
    ),
    h('div', { class: 'big' }, bars(t, null, 'All objects', show)),
    figures(t, show),
  );
  box.table.replaceChildren();
  const width = n => n[unit].died.high + n[unit].permanent.high + n[unit].born.high;
  let widest = Math.max(1, ...(r.tree.children || []).map(width));
  const cell = k => ({
    title: { died: 'Died', permanent: 'Stayed', born: 'Born' }[k],
    numeric: true,
    cell: n => (n.estimated ? '~' : '') + range(n[unit][k], show),
  });
  table = new TreeTable(box.table, {
    label: 'Groups',
    open,
    changed: () => go('diff', { open: open.size ? JSON.stringify([...open]) : null }),
    more: async (p, skip) => (await get('diff', { ...q, path: JSON.stringify(p), skip })).tree,
    columns: [
      {
        title: 'Net change',
        numeric: true,
        cell: n => h('b', {}, (n.estimated ? '~' : '') + change(n[unit].after.value - n[unit].before.value, show)),
      },
      cell('died'),
      cell('permanent'),
      cell('born'),
      { title: 'In proportion', cell: n => bars(n[unit], widest, n.key, show) },
    ],
  });
  table.show(r.tree);
  await drawn;
}

// draw makes the flame graph: by the groups of the table, and below them by allocation site.
function draw(params) {
  const q = question(params),
    by = params.get('by');
  return graph.draw({ from: q.from, to: q.to, by: by && !/\bsite\b/.test(by) ? by + ', site' : by, where: q.where },
    params);
}

async function file(format) {
  const q = new URLSearchParams({
    format,
    ...Object.fromEntries(Object.entries(question(state().params)).filter(([, v]) => v)),
  });
  const r = await fetch('api/export-diff?' + q);
  if (!r.ok) {
    notice('Export failed: ' + (await r.json()).error);
    return;
  }
  save(/filename="([^"]+)"/.exec(r.headers.get('Content-Disposition'))?.[1] || 'heapcam.' + format, await r.blob());
}

async function remake(d, params) {
  const main = document.getElementById('main').firstElementChild;
  leave();
  main.replaceChildren();
  await show(main, d, params);
}

export function leave() {
  graph?.end();
  two.leave();
  box = table = graph = null;
  shown = '';
}
export const refresh = (d, params) => (box ? update(d, params) : remake(d, params));
