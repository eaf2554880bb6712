// Two recordings, from before and after a change of the program: how the heap and the slopes changed.
import { h, go, get, bytes, change, span, frame, prose, visible, parts } from './lib.js';
import { Changes, large } from './change.js';

let box;

// choice is the switch between the two recordings, and two collections of one.
export const choice = (d, pair) =>
  d.before
    ? h(
        'p',
        { class: 'bar' },
        h(
          'span',
          { class: 'switch', role: 'group', 'aria-label': 'What to compare' },
          [
            ['Two recordings', true],
            ['Two collections of one', false],
          ].map(([t, on]) =>
            h(
              'button',
              {
                type: 'button',
                'aria-pressed': String(on === pair),
                click: () => go('diff', { pair: on ? null : '0', part: null, open: null }),
              },
              t,
            ),
          ),
        ),
      )
    : '';

export async function show(main, d, params) {
  box = {
    net: h('div', { 'aria-live': 'polite' }),
    said: h(
      'div',
      { id: 'slopes', 'aria-live': 'polite' },
      h('p', { class: 'quiet' }, 'Computing how fast each grew …'),
    ),
    draw: h('section', { id: 'changes' }),
    list: h('div', {}),
  };
  box.graph = new Changes(box.draw, 'diff');
  main.append(
    h('h2', {}, 'What changed between the two recordings'),
    choice(d, true),
    h('p', { class: 'sub' }, `Before: ${visible(d.before.title)}. After: ${visible(d.title)}. `,
      'The heap is compared after the last collection of each.'),
    box.net,
    box.said,
    box.draw,
    box.list,
  );
  await update(d, params);
}

export async function update(d, params) {
  const mine = box;
  await Promise.all([heaps(mine, params), mine.slopes || slopes(mine)]);
}

async function heaps(mine, params) {
  const r = await mine.graph.draw({ two: 1, by: params.get('by'), where: params.get('filter') }, params);
  if (!r || box !== mine || mine.net.firstChild) return;
  const t = r.tree;
  if (!params.get('part'))
    mine.net.append(large(t.bytes - (t.before_bytes || 0), `live bytes from ${bytes(t.before_bytes || 0)} to ` +
      `${bytes(t.bytes)}`));
}

async function slopes(mine) {
  let r;
  try {
    r = await get('compare', {}, 'compare');
  } catch (e) {
    if (e.name !== 'AbortError' && box === mine)
      mine.said.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  mine.slopes = true;
  const long = w => span(w.seconds * 1e9);
  mine.said.replaceChildren(
    h('p', { class: 'verdict' }, prose(r.sentence)),
    h('p', { class: 'sub' }, `Before: ${long(r.before)}, ${bytes(r.before.allocated_bytes)} allocated. `,
      `After: ${long(r.after)}, ${bytes(r.after.allocated_bytes)} allocated (estimated).`),
  );
  mine.list.append(...[verdicts(r), sites(r)].filter(Boolean));
}

const states = { new: 'New', still: 'Still there', gone: 'Gone' };
const verdicts = r =>
  r.verdicts?.length
    ? h('ul', { class: 'cards' }, r.verdicts.map(v =>
        h('li', { class: v.state === 'gone' ? 'fixed' : 'leak' }, h('b', {}, states[v.state] || v.state),
          prose(v.sentence), v.cannot_tell ? h('p', { class: 'sub' }, prose(v.cannot_tell)) : null)))
    : null;

const most = 20; // sites that are listed
const slope = s => h('span', { title: `95 % interval: ${change(s.low, bytes)}/s to ${change(s.high, bytes)}/s` },
  s.low <= 0 && s.high >= 0 ? 'not steady' : `${change(s.value, bytes)}/s`);
function sites(r) {
  if (!r.sites?.length) return null;
  const heads = ['Class and allocation site', 'Before', 'After'];
  return h(
    'details',
    { open: true },
    h('summary', {}, 'How fast each allocation site grew'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Slopes by site' }, h(
      'table',
      {},
      h('thead', {}, h('tr', {}, heads.map((t, i) => h('th', { scope: 'col', class: i ? 'n' : null }, t)))),
      h('tbody', {}, r.sites.slice(0, most).map(s => h(
        'tr',
        {},
        h('td', { class: 'name' },
          parts(`${s.class} at ` + (s.site?.length ? frame(s.site[0]) : 'an unknown site'))),
        h('td', { class: 'n' }, slope(s.before_bytes_per_second)),
        h('td', { class: 'n' }, slope(s.after_bytes_per_second)),
      ))),
    )),
  );
}

export function leave() {
  box?.graph.end();
  box = null;
}
