// Retained: what a reference listing says. The dominator tree, groups by what they retain, and who holds a class, what
// a site allocated, or one object.
import { h, go, get, bytes, count, plural, share, when, facts, prose, parts, settle } from './lib.js';
import { TreeTable } from './tree.js';

const kinds = { object: 'Dominator tree', class: 'Class', package: 'Package', loader: 'Class loader', site: 'Site' };
let box = null,
  most = '', // how long a reference listing may stop the JVM; '': none can be taken
  shown = '',
  asked = '';

export async function show(main, data, params) {
  box = {
    head: h('p', { id: 'head', 'aria-live': 'polite' }),
    form: h('div', {}),
    held: h('div', { id: 'held', 'aria-live': 'polite' }),
    bar: h('div', { class: 'bar' }),
    table: h('div', { id: 'retained' }),
  };
  shown = asked = '';
  main.append(h('h2', {}, 'Who holds what'), box.head, box.form, box.held, box.bar, box.table);
  await update(data, params);
}

const what = params => ['object', 'site', 'class'].find(k => params.get(k)) || '';

export async function update(data, params) {
  if (!box) return;
  most = data.settle;
  await sizes(params);
  await holders(params);
}

// none says how to record references.
function none() {
  const why =
    'This recording has no reference listing, which lists all references of the heap at one moment. So it is not ' +
    'known what keeps objects alive. ';
  box.head.replaceChildren(
    ...(most
      ? [why, h('button', { type: 'button', id: 'list', click: () => settle(most) }, 'Take a reference listing')]
      : [
          why,
          'The command ',
          h('code', {}, 'heapcam references JVM'),
          ' takes one of a JVM that an agent records.',
        ]),
  );
}

async function sizes(params) {
  const by = kinds[params.get('group')] ? params.get('group') : 'object',
    mine = box;
  if (by === shown) return;
  let r;
  try {
    r = await get('retained', { by }, 'retained');
  } catch (e) {
    if (e.name !== 'AbortError' && box === mine)
      box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  shown = by;
  if (r.none) {
    none();
    return;
  }
  box.head.replaceChildren(
    `References after collection ${count(r.gc)}, `,
    when(r.time),
    `: ${plural(r.objects, 'object')}, ${bytes(r.bytes)}. No root reaches ${bytes(r.unreached_bytes)}; only weak ` +
      `references lead to ${bytes(r.weak_bytes)}.` +
      (r.missing?.length ? ` Not in the listing: ${r.missing.join('; ')}.` : ''),
  );
  fields(params);
  box.bar.replaceChildren(
    h('b', {}, 'What retains most'),
    h(
      'span',
      { class: 'switch', role: 'group', 'aria-label': 'Groups' },
      Object.entries(kinds).map(([k, t]) =>
        h(
          'button',
          {
            type: 'button',
            'aria-pressed': String(k === by),
            click: () => go('retained', { group: k === 'object' ? null : k }),
          },
          t,
        ),
      ),
    ),
  );
  if (by === 'object') tree(r);
  else groups(r, by);
}

const node = c => ({ ...c, key: `${c.class} @ ${c.address}`, count: c.retained > c.bytes ? 1 : 0 });
const holds = (change, label) =>
  h(
    'button',
    {
      type: 'button',
      class: 'pick',
      'aria-label': `who holds it: ${label}`,
      click: () => go('retained', { ...nobody, ...change }, false),
    },
    'who holds it',
  );
const nobody = { class: null, site: null, object: null };

// tree is the dominator tree.
function tree(r) {
  box.table.replaceChildren();
  const t = new TreeTable(box.table, {
    label: 'Dominator tree',
    open: new Set(),
    more: async path => {
      const part = await get('retained', { by: 'object', object: path.at(-1).split(' @ ').at(-1) });
      return { children: part.children.map(node) };
    },
    enter: path => go('retained', { ...nobody, object: path.at(-1).split(' @ ').at(-1) }, false),
    columns: [
      { title: 'Retained', numeric: true, cell: n => bytes(n.retained) },
      { title: 'Share', numeric: true, cell: n => share(n.retained / Math.max(r.bytes, 1)) },
      { title: 'Own bytes', numeric: true, cell: n => bytes(n.bytes) },
      { title: 'Holder', cell: n => holds({ object: n.address }, n.key) },
    ],
  });
  t.show({ count: r.children.length, children: r.children.map(node) });
  if (r.count > r.children.length)
    box.table.append(
      h('p', { class: 'sub' }, `The largest ${count(r.children.length)} of ${plural(r.count, 'object')} are shown.`),
    );
}

function groups(r, by) {
  const row = g =>
    h(
      'tr',
      {},
      h('td', { class: 'name' }, parts(g.name)),
      h('td', { class: 'n' }, bytes(g.retained)),
      h('td', { class: 'n' }, share(g.retained / Math.max(r.bytes, 1))),
      h('td', { class: 'n' }, count(g.objects)),
      h('td', { class: 'n' }, bytes(g.bytes)),
      h('td', {}, by === 'class' || (by === 'site' && !g.name.startsWith('(')) ? holds({ [by]: g.name }, g.name) : ''),
    );
  box.table.replaceChildren(
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Groups by retained bytes' },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            [[kinds[by]], ['Retained', 1], ['Share', 1], ['Objects', 1], ['Own bytes', 1], ['Holder']].map(([t, n]) =>
              h('th', { scope: 'col', class: n ? 'n' : null }, t),
            ),
          ),
        ),
        h('tbody', {}, (r.groups || []).map(row)),
      ),
    ),
  );
}

// fields asks for the objects whose holder is wanted.
function fields(params) {
  const kind = what(params) || 'class';
  box.form.replaceChildren(
    h(
      'form',
      {
        class: 'bar',
        submit: e => {
          e.preventDefault();
          const v = e.target.elements.whose.value.trim();
          const k = /^0x[0-9a-f]+$/i.test(v) ? 'object' : /[(:]/.test(v) ? 'site' : 'class';
          go('retained', { ...nobody, [k]: v || null }, false);
        },
      },
      h('label', { for: 'whose' }, 'Who holds'),
      h('input', {
        id: 'whose',
        name: 'whose',
        class: 'grow',
        spellcheck: 'false',
        autocomplete: 'off',
        value: params.get(kind) || '',
        placeholder: 'a class, a site such as Shop.add(Shop.java:12), or an address',
      }),
      h('button', { type: 'submit' }, 'Find'),
    ),
  );
}

async function holders(params) {
  const kind = what(params),
    mine = box;
  const q = kind ? { [kind]: params.get(kind) } : null;
  const key = JSON.stringify(q);
  if (key === asked) return;
  asked = key;
  if (box.form.firstChild) fields(params);
  if (!q) {
    box.held.replaceChildren();
    return;
  }
  let r;
  try {
    r = await get('holders', q, 'holders');
  } catch (e) {
    if (e.name === 'AbortError' || box !== mine) return;
    box.held.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine || asked !== key) return;
  if (r.none) {
    none();
    return;
  }
  const x = r.holders;
  const steps = (title, list) =>
    list?.length
      ? h(
          'details',
          { open: list.length < 4 ? true : null },
          h('summary', {}, title),
          h('ul', { class: 'stack' }, list.slice(0, 20).map(w => h('li', {}, `${share(w.share)}  `, prose(w.text)))),
        )
      : null;
  box.held.replaceChildren(
    h('h3', {}, `Who holds ${x.asked} (${plural(x.matched, 'object')})`),
    h(
      'ol',
      { class: 'cards' },
      x.holders.slice(0, 10).map(o =>
        h(
          'li',
          { class: o.share > 0.5 ? 'leak' : '' },
          h('p', {}, h('b', {}, share(o.share)), prose(o.text)),
          facts([
            o.retained ? ['Retains', bytes(o.retained)] : null,
            ['Objects', count(o.objects)],
            ['Reference', o.strength],
            o.address ? ['Holder', o.address] : null,
          ]),
          steps('Ways from the holder to these objects', o.below?.filter(w => w.text)),
        ),
      ),
    ),
    facts([
      x.rest_share > 0 ? ['Held in other ways', share(x.rest_share)] : null,
      x.weak_share > 0 ? ['Reached only by weak references', share(x.weak_share)] : null,
      x.unreached_share > 0 ? ['Reached from no root', share(x.unreached_share)] : null,
    ]),
    steps('Paths from the roots', r.paths.ways) || '',
  );
}

export function leave() {
  box = null;
}
export async function refresh(data, params) {
  if (!box) return;
  shown = asked = '';
  await update(data, params);
}
