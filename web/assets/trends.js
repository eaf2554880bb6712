// Trends: the groups that changed most over the window, the curves of one group by the collections that its objects
// survived, and survival curves.
import {
  h,
  go,
  get,
  bytes,
  count,
  plural,
  change,
  share,
  frame,
  stack,
  address,
  clock,
  parts as broken,
  asking,
  unknown,
  mayFill,
} from './lib.js';
import { Timeline, spark } from './charts.js';
import { ask, showFieldError, classifiers } from './ask.js';

let box,
  data,
  line,
  shown = '',
  drawn = '';

// perSecond is how fast a group changes, with its 95 % interval, or that it does not change steadily.
const perSecond = ({ slope, first_bytes: first, last_bytes: last, peak_bytes: peak }, mark) => {
  if (!slope) return '–';
  if (first === last && last === peak) return 'no change';
  const { bytes_per_second: mid, low, high } = slope;
  // What grows at once and then shrinks slowly has no steady change.
  if ((low <= 0 && high >= 0) || Math.sign(mid) !== Math.sign(last - first)) return 'not steady';
  return h(
    'span',
    { title: '95 % interval' },
    `${mark}${change(mid, bytes)}/s`,
    h('div', { class: 'sub' }, `${change(low, bytes)} to ${change(high, bytes)}`),
  );
};

const question = params => ({ by: params.get('by') || 'type', where: params.get('filter'), win: params.get('win') });
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
    chart: h('div', { id: 'curve' }),
    table: h('div', { id: 'trend' }),
    survival: h(
      'details',
      { id: 'survival', toggle: survival },
      h('summary', {}, 'How long objects live, and sites to pretenure'),
      h('div', {}),
    ),
    list,
  };
  main.append(h('h2', {}, 'Trends over time'), box.top, box.head, box.chart, box.table, box.survival);
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
    box.head.textContent = 'heapcam groups the objects after each collection …';
    let t;
    try {
      t = await get('trend', q, 'trend');
      if (box !== mine) return;
    } catch (e) {
      if (box !== mine || (e.name === 'AbortError' && asking())) return; // a newer request fills the page
      box.head.textContent = '';
      if (e.name === 'AbortError') return;
      if (!showFieldError(e)) box.head.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
      return;
    }
    shown = fields;
    showFieldError(null);
    const known = data.report.collections.filter(c => c.known).length;
    const rows = t.rows.filter(r => r.bytes.some(b => b !== r.bytes[0]) || r.objects?.some(n => n !== r.objects[0]));
    const several = t.collections.length > 1;
    box.head.textContent = several
      ? (rows.length < t.rows.length || !t.left_out
          ? `${count(rows.length)} of ${plural(t.rows.length + t.left_out, 'group')} changed`
          : `The ${count(rows.length)} groups of ${count(rows.length + t.left_out)} that changed most`) +
        ` over ${plural(t.collections.length, 'collection')}` +
        (t.collections.length < known ? ` (${count(known)} have a known heap state)` : '') +
        `. First those that change steadily, the fastest first; then the largest changes.` +
        (t.exact ? ' All figures are exact.' : ' Figures marked ~ are estimated from samples.') +
        mayFill(t)
      : unknown(data.report) || 'A trend needs two collections whose heap state is known.';
    if (!several) {
      box.table.replaceChildren();
      box.survival.hidden = true;
      return;
    }
    const times = t.at.map(k => Date.parse(t.collections[k].time));
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
              ...[
                ['Group'],
                ['First', 1],
                ['Last', 1],
                ['Change', 1],
                ['Per second, 95 % interval', 1],
                ['Peak', 1],
                ['Curve'],
              ].map(([x, n]) => h('th', { scope: 'col', class: n ? 'n' : null }, x)),
            ),
          ),
          h(
            'tbody',
            {},
            rows.map(r => {
              const grown = r.last_bytes - r.first_bytes,
                mark = r.estimated ? '~' : '';
              return h(
                'tr',
                { 'data-path': JSON.stringify(r.path) },
                h(
                  'td',
                  { class: 'name' },
                  h('button', { type: 'button', class: 'pick', click: () => pick(r) }, broken(pathName(r.path))),
                  r.callers_drawn ? h('span', { class: 'sub' }, ofDrawn(r)) : '',
                ),
                h('td', { class: 'n' }, mark + bytes(r.first_bytes)),
                h('td', { class: 'n' }, mark + bytes(r.last_bytes)),
                h('td', { class: 'n' }, mark + change(grown, bytes)),
                h('td', { class: 'n' }, perSecond(r, mark)),
                h('td', { class: 'n' }, `${mark}${bytes(r.peak_bytes)} after collection ${count(r.peak_gc)}`),
                h('td', {}, spark(r.bytes, 160, 22, grown > 0 ? 'c3' : 'c0', times)),
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
  await curves(q, row, params);
}

const pathName = path => path.join(' › ');

// curves draws one group: all of its objects, and those that have survived so many collections.
const survived = [0, 2, 8];
async function curves(q, row, params) {
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
          'curve' + k,
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
    box.chart.replaceChildren(
      h('p', { class: 'quiet' }, 'This group is not among those that changed most, so it has no curve.'),
    );
    return;
  }
  const times = all.collections.map(c => Date.parse(c.time) / 1000);
  for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
  // In a large recording the survivors are known for fewer collections. An answer without a row means 0, unless the
  // server left rows out.
  const at = (p, f) => {
    const of = new Map(p.collections.map((c, i) => [c.gc, p.rows.length ? p.rows[0][f][i] : p.left_out ? null : 0]));
    return all.collections.map(c => of.get(c.gc) ?? null);
  };
  const series = f =>
    survived.map((k, i) => ({
      name: k ? `survived at least ${k} collections` : 'all objects',
      class: ['c0', 'c1', 'c3'][i],
      kind: 'line',
      gaps: parts[i].collections.length < times.length,
      values: at(parts[i], f),
    }));
  const holder = h('div', {});
  box.chart.append(
    h('h3', {}, pathName(row)),
    holder,
    data.report.collections.some(c => c.kind === 'full')
      ? h(
          'p',
          { class: 'sub' },
          'After a full collection heapcam may not know which objects are older. Such objects count as new, so the ' +
            'curves of survivors fall although the objects did not die.',
        )
      : '',
  );
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
      label: plural(times.length, 'collection'),
    },
  );
  line.describeAt = i => `collection ${count(all.collections[i].gc)}, ${clock(all.collections[i].time, true)}: `;
}

const ages = [1, 2, 4, 8, 16];
// survival loads the survival curves when the reader opens them.
async function survival() {
  const to = box.survival.lastElementChild;
  if (!box.survival.open || to.firstChild) return;
  to.replaceChildren(h('p', { class: 'quiet' }, 'heapcam replays all objects. This takes longer …'));
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
                  ages.map(a =>
                    h('th', { scope: 'col', class: 'n', title: plural(a, 'collection') }, `Survived ${a}`),
                  ),
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
    h('h3', {}, 'Sites to pretenure: nearly all of their objects reach old space'),
    s.pretenure.length
      ? h(
          'ul',
          { class: 'cards' },
          s.pretenure.map(p =>
            h(
              'li',
              {},
              `${share(p.tenured)} of the ${p.class} objects allocated at this site reach old space. Before that, ` +
                `young collections copied about ${bytes(p.copied_bytes)} of them.`,
              stack(p.site),
            ),
          ),
        )
      : h('p', {}, 'None.'),
    h(
      'p',
      { class: 'sub' },
      'The tables show the share of objects that survived at least 1, 2, 4, 8 and 16 collections. Numbers of objects ' +
        'marked ~ are estimated from samples.' +
        (s.uncounted_collections
          ? ` The shares of classes leave out ${plural(s.uncounted_collections, 'collection')}, such as full ones ` +
            'and those soon after them: it is not known which objects died there. The true shares may be lower.'
          : ''),
    ),
    table('Survival by class', s.types) || '',
    table('Survival by site', s.sites) || '',
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

// ofDrawn says that the callers of a group's objects are not exact.
function ofDrawn(r) {
  return ` callers drawn${r.callers_share ? `: ${share(r.callers_share)}` : ''}`;
}
