// Trends: what moved most over the window, the course of one group by how much it has survived, and what survives at
// all.
import { h, go, get, bytes, count, share, frame, stack, address, clock, asking } from './lib.js';
import { Timeline, spark } from './charts.js';
import { ask, told, classifiers } from './ask.js';

let box,
  data,
  line,
  shown = '',
  drawn = '';

const question = params => ({ by: params.get('by') || 'type', where: params.get('filter') });
const rowOf = params => {
  try {
    const r = JSON.parse(params.get('row') || 'null');
    return Array.isArray(r) ? r : null;
  } catch {
    return null;
  }
};

export async function show(main, d, params) {
  data = d;
  shown = drawn = '';
  const list = await classifiers();
  box = {
    top: h('div', {}),
    head: h('p', { id: 'head', 'aria-live': 'polite' }),
    chart: h('div', { id: 'course' }),
    table: h('div', { id: 'trend' }),
    life: h('details', { id: 'life', toggle: life }, h('summary', {}, 'Survival, and what to pretenure'), h('div', {})),
    list,
  };
  main.append(h('h2', {}, 'What moved over the window'), box.top, box.head, box.chart, box.table, box.life);
  await update(d, params);
}

export async function update(d, params) {
  data = d;
  if (!box) return;
  const mine = box;
  const q = question(params),
    row = rowOf(params);
  const fields = JSON.stringify(q);
  if (box.fields !== fields) {
    box.fields = fields;
    box.top.replaceChildren(...ask(params, box.list, 'type'));
  }
  if (shown !== fields) {
    box.head.textContent = 'Grouping the heap after each collection …';
    let t;
    try {
      t = await get('trend', q, 'trend');
      if (box !== mine) return;
    } catch (e) {
      if (box !== mine || (e.name === 'AbortError' && asking())) return; // or a newer question stands there
      box.head.textContent = '';
      if (e.name === 'AbortError') return;
      if (!told(e)) box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
      return;
    }
    shown = fields;
    told(null);
    const known = data.report.collections.filter(c => c.known).length;
    box.head.textContent = t.collections.length
      ? `${count(t.collections.length)} collections` +
        (t.collections.length < known ? ` of the ${count(known)} of which the state is known` : '') +
        `, first to last; the ${count(t.rows.length)} groups that moved most` +
        (t.left_out ? ` of ${count(t.rows.length + t.left_out)}.` : '.') +
        (t.exact ? ' All figures are exact.' : ' ~ marks estimates from samples.')
      : 'The state is known after no collection of this recording.';
    const pick = r => go('trends', { row: JSON.stringify(r.path) });
    box.table.replaceChildren(
      h(
        'div',
        { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Groups' },
        h(
          'table',
          {},
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              ...[['Group'], ['First', 1], ['Last', 1], ['Moved', 1], ['Peak', 1], ['Course']].map(([x, n]) =>
                h('th', { scope: 'col', class: n ? 'n' : null }, x),
              ),
            ),
          ),
          h(
            'tbody',
            {},
            t.rows.map(r => {
              const moved = r.last_bytes - r.first_bytes,
                mark = r.estimated ? '~' : '';
              return h(
                'tr',
                { 'data-path': JSON.stringify(r.path) },
                h(
                  'td',
                  { class: 'name' },
                  h('button', { type: 'button', class: 'pick', click: () => pick(r) }, r.path.join(' › ')),
                ),
                h('td', { class: 'n' }, mark + bytes(r.first_bytes)),
                h('td', { class: 'n' }, mark + bytes(r.last_bytes)),
                h('td', { class: 'n' }, mark + (moved > 0 ? '+' : '') + bytes(moved)),
                h('td', { class: 'n' }, `${mark}${bytes(r.peak_bytes)} at ${count(r.peak_gc)}`),
                h('td', {}, spark(r.bytes, 160, 22, moved > 0 ? 'c3' : 'c0')),
              );
            }),
          ),
        ),
      ),
    );
  }
  box.table
    .querySelectorAll('tr[data-path]')
    .forEach(tr =>
      tr.dataset.path === params.get('row')
        ? tr.setAttribute('aria-current', 'true')
        : tr.removeAttribute('aria-current'),
    );
  await course(q, row, params);
}

// course draws one group: all of it, and what has survived so many collections.
const survived = [0, 2, 8];
async function course(q, row, params) {
  const mine = box;
  const key = JSON.stringify([q, row, document.documentElement.dataset.theme, params.get('tz')]);
  if (key === drawn) return;
  drawn = key;
  line?.end();
  line = null;
  box.chart.replaceChildren();
  if (!row) return;
  let parts;
  try {
    parts = await Promise.all(
      survived.map(k =>
        get(
          'trend',
          {
            ...q,
            row: JSON.stringify(row),
            where: [q.where ? `(${q.where})` : null, k ? `age >= ${k}` : null].filter(Boolean).join(' and '),
          },
          'course' + k,
        ),
      ),
    );
  } catch (e) {
    if (e.name !== 'AbortError' && box === mine)
      box.chart.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  const all = parts[0];
  if (!all.rows.length || drawn !== key) {
    box.chart.replaceChildren(h('p', { class: 'quiet' }, 'This group is not among those that moved most.'));
    return;
  }
  const times = all.collections.map(c => Date.parse(c.time) / 1000);
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
  // Of a large recording what has survived is known of fewer collections; without a row it is nothing, unless that is
  // among those left out.
  const at = (p, f) => {
    const of = new Map(p.collections.map((c, i) => [c.gc, p.rows.length ? p.rows[0][f][i] : p.left_out ? null : 0]));
    return all.collections.map(c => of.get(c.gc) ?? null);
  };
  const series = f =>
    survived.map((k, i) => ({
      name: k ? `survived at least ${k} collections` : 'all',
      class: ['c0', 'c1', 'c3'][i],
      kind: 'line',
      gaps: parts[i].collections.length < times.length,
      values: at(parts[i], f),
    }));
  const holder = h('div', {});
  box.chart.append(h('h3', {}, row.join(' › ')), holder);
  line = new Timeline(
    holder,
    times,
    [
      { title: 'Live bytes', format: bytes, binary: true, height: 170, series: series('bytes') },
      { title: 'Live objects', format: n => count(Math.round(n)), height: 110, series: series('objects') },
    ],
    {
      choose: (a, b) => {
        location.hash =
          a === b
            ? address('state', { at: all.collections[a].gc })
            : address('diff', { from: all.collections[a].gc, to: all.collections[b].gc });
      },
      label: `${times.length} collections`,
    },
  );
  line.describeAt = i => `collection ${all.collections[i].gc}, ${clock(all.collections[i].time, true)}: `;
}

const ages = [1, 2, 4, 8, 16];
async function life() {
  const to = box.life.lastElementChild;
  if (!box.life.open || to.firstChild) return;
  to.replaceChildren(h('p', { class: 'quiet' }, 'Following every object …'));
  let s;
  try {
    s = await get('survival', {}, 'survival');
  } catch (e) {
    to.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  const table = (title, list) =>
    list.length
      ? h(
          'div',
          {},
          h('h3', {}, title),
          h(
            'div',
            { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title },
            h(
              'table',
              {},
              h(
                'thead',
                {},
                h(
                  'tr',
                  {},
                  h('th', { scope: 'col' }, 'Class'),
                  h('th', { scope: 'col', class: 'n' }, 'Objects'),
                  ages.map(a => h('th', { scope: 'col', class: 'n' }, `lives ${a}`)),
                  h('th', { scope: 'col' }, 'Curve'),
                ),
              ),
              h(
                'tbody',
                {},
                list.map(c =>
                  h(
                    'tr',
                    {},
                    h(
                      'td',
                      { class: 'name' },
                      c.class,
                      c.site?.length ? h('div', { class: 'sub' }, `at ${frame(c.site[0])}`) : null,
                    ),
                    h('td', { class: 'n' }, (c.samples ? '~' : '') + count(c.objects)),
                    ages.map(a => h('td', { class: 'n' }, c.survive[a] === undefined ? '–' : share(c.survive[a]))),
                    h('td', {}, spark(c.survive, 120, 20, 'c2')),
                  ),
                ),
              ),
            ),
          ),
        )
      : null;
  to.replaceChildren(
    h('h3', {}, 'What to pretenure'),
    s.pretenure.length
      ? h(
          'ul',
          { class: 'cards' },
          s.pretenure.map(p =>
            h(
              'li',
              {},
              `${share(p.tenured)} of the ${p.class} allocated here reach old space; young collections copied about ` +
                `${bytes(p.copied_bytes)} of them for nothing.`,
              stack(p.site),
            ),
          ),
        )
      : h('p', {}, 'No site’s objects nearly all reach old space.'),
    table('By class', s.types) || '',
    table('By site', s.sites) || '',
  );
}

export function leave() {
  line?.end();
  line = box = null;
  shown = drawn = '';
}
export async function refresh(d, params) {
  data = d;
  if (!box) return;
  shown = drawn = '';
  await update(d, params);
}
