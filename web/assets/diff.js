// Diff: what died, survived and was born between two collections, as bars by group (ICPE'18, Figure 14).
import { h, go, get, bytes, count, plural, change, when, save, state, notice, keys, unknown } from './lib.js';
import { TreeTable } from './tree.js';
import { ask, showFieldError, classifiers, gcField, name } from './ask.js';

let box,
  data,
  table,
  shown = '';

const known = () => data.report.collections.filter(c => c.known);
const question = params => ({
  from: params.get('from') || String(known()[0].gc),
  to: params.get('to') || String(known().at(-1).gc),
  by: params.get('by') || 'type',
  where: params.get('filter'),
});

export async function show(main, d, params) {
  data = d;
  shown = '';
  const list = (await classifiers()).filter(c => c.name !== 'address');
  if (!known().length) {
    main.append(
      h('h2', {}, 'Diff between two collections'),
      h('p', { class: 'quiet' }, unknown(d.report)),
    );
    return;
  }
  box = {
    top: h('div', {}),
    head: h('div', { id: 'head', 'aria-live': 'polite' }),
    table: h('div', { id: 'diff' }),
    list,
  };
  main.append(h('h2', {}, 'Diff between two collections'), box.top, box.head, box.table);
  await update(d, params);
}

export async function update(d, params) {
  data = d;
  if (!box) return;
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
  if (key === shown) return;
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
    h(
      'p',
      {},
      `From ${name(r.from)}, `,
      when(r.from.time),
      `, to ${name(r.to)}, `,
      when(r.to.time),
      `: ${range(t.died, show)} died, ${range(t.permanent, show)} survived, ${range(t.born, show)} were born.`,
      r.identity_lost
        ? ` Because of full collections in between, heapcam does not know of ${plural(r.identity_lost, 'object')} ` +
            `whether they survived or were born. So some figures are ranges.`
        : '',
    ),
    h('p', { class: 'sub bar' }, keys(
      ['kdied', 'died: live after the first of the two collections, dead after the second'],
      ['kperm', 'survived: live after both'],
      ['kborn', 'born: allocated in between, live after the second'],
    )),
  );
  box.table.replaceChildren();
  const width = n => n[unit].died.value + n[unit].permanent.value + n[unit].born.value;
  let widest = Math.max(1, ...(r.tree.children || []).map(width));
  const cell = k => ({
    title: { died: 'Died', permanent: 'Survived', born: 'Born' }[k],
    numeric: true,
    cell: n => (n.estimated ? '~' : '') + range(n[unit][k], show),
  });
  table = new TreeTable(box.table, {
    label: 'Groups',
    open,
    changed: () => go('diff', { open: open.size ? JSON.stringify([...open]) : null }),
    more: async (p, skip) => (await get('diff', { ...q, path: JSON.stringify(p), skip })).tree,
    columns: [
      cell('died'),
      cell('permanent'),
      cell('born'),
      {
        title: 'Net change',
        numeric: true,
        cell: n => {
          const v = n[unit].after.value - n[unit].before.value;
          return change(v, show);
        },
      },
      { title: 'In proportion', cell: n => bars(n[unit], widest, n.key, show) },
    ],
  });
  table.show(r.tree);
}

// range writes a figure, or its lower and upper bound.
const range = (r, show) => (r.low === r.high ? show(r.value) : `${show(r.low)} to ${show(r.high)}`);

function bars(c, widest, key, show) {
  let x = 0;
  const part = (k, v) => {
    const w = (1000 * v) / widest;
    const e = h('rect', { x, y: 1, width: w, height: 12, fill: `var(--${k})` });
    x += w;
    return w > 0 ? e : null;
  };
  return h(
    'svg',
    {
      class: 'dpb',
      viewBox: '0 0 1000 14',
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label':
        `${key}: died ${range(c.died, show)}, survived ${range(c.permanent, show)}, born ${range(c.born, show)}`,
    },
    part('died', c.died.value),
    part('perm', c.permanent.value),
    part('born', c.born.value),
  );
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

export function leave() {
  box = table = null;
  shown = '';
}
export async function refresh(d, params) {
  if (!box) {
    const main = document.getElementById('main').firstElementChild;
    main.replaceChildren();
    await show(main, d, params);
    return;
  }
  await update(d, params);
}
