// Leaks: each verdict a card with its curve, rate, holder, onset and stack, and the evidence behind “why”. Without a
// verdict: what would have been found, what nearly was, and what to do next.
import {
  h,
  get,
  bytes,
  count,
  plural,
  share,
  plain,
  span,
  stack,
  facts,
  frame,
  address,
  prose,
  term,
} from './lib.js';
import { spark } from './charts.js';
import { began, heldBy } from './hero.js';

let mine = null; // the element of the view

export async function show(main, data) {
  mine = main;
  const r = data.report,
    list = r.verdicts;
  main.append(h('h2', {}, 'Leaks'));
  if (!list.length) {
    main.append(nothing(r));
    return;
  }
  main.append(
    h(
      'p',
      { class: 'sub' },
      'These data structures grow throughout the window, or filled the heap. ' +
        (r.old_collections
          ? `Old space was collected ${plural(r.old_collections, 'time')} in the window.`
          : 'Old space was not collected in the window.'),
    ),
    list.some(s => s.kind === 'suspect')
      ? h(
          'p',
          { id: 'settle' },
          'A suspected leak is not proven. While an agent records the JVM, ',
          h('code', {}, 'heapcam leaks --settle JVM'),
          ' stops it once for a short time, and shows which objects live.',
        )
      : '',
    h('ol', { class: 'cards', id: 'leaks' }, list.map((s, i) => card(r, s, i))),
  );
  await curves(main, list);
}

// own is the innermost frame of the application; see analysis/sites.
const own = v => v.place || v.site[0];

// callers shows who calls a site of one frame most, by the samples that end in it.
const callers = s =>
  s.callers
    ? [
        h('p', { class: 'sub' }, `Called by, in ${share(s.callers.share)} of ` +
          `${plural(s.callers.samples, 'sample')} that end there:`),
        stack(s.callers.stack.slice(1)),
      ]
    : null;

function card(r, s, i) {
  const place = s.site.length ? frame(s.site[0]) : '';
  return h(
    'li',
    { class: s.kind === 'suspect' ? 'suspect' : 'leak' },
    h('p', { class: 'verdict' }, h('b', {}, `${i + 1}.`), prose(s.sentence)),
    h(
      'div',
      { class: 'leak-top' },
      h('div', { class: 'curve' }),
      facts([
        ['Class', s.class + (s.loader ? ` (${s.loader})` : '')],
        [
          'Growth rate',
          `${bytes(s.bytes_per_second)}/s (95 % interval: ${bytes(s.bytes_per_second_low)}/s to ` +
            `${bytes(s.bytes_per_second_high)}/s)`,
        ],
        ['Growth in the window', '+' + bytes(s.grown_bytes)],
        ['Growing since', began(r, s)],
        s.site.length ? ['Allocated in', frame(own(s))] : null,
        ['Held by', heldBy(r, s)],
        s.seconds_to_exhaustion === null
          ? null
          : ['Heap full', `${span(s.seconds_to_exhaustion * 1e9)} after the end, at this rate`],
      ]),
    ),
    h(
      'p',
      { class: 'bar' },
      place
        ? h(
            'a',
            {
              class: 'button history',
              href: address('trends', {
                by: 'type, site(1)',
                // of all classes a large recording has too many groups
                filter: `type == ${JSON.stringify(s.class)}`,
                row: JSON.stringify([s.class, place]),
              }),
            },
            'Growth of this site',
          )
        : null,
      place
        ? h('a', { class: 'button holder', href: address('retained', { site: place }) }, 'Who holds it')
        : null,
    ),
    h('details', { open: i === 0 }, h('summary', {}, 'Allocation site'), stack(s.site), callers(s)),
    h(
      'details',
      { class: 'why' },
      h('summary', {}, 'Why heapcam reports it'),
      facts([
        ['Verdict', s.kind],
        [
          'Confidence',
          `${share(s.confidence)} that the growth is not chance` +
            (s.kind === 'suspect' ? '; whether the objects live is not known' : ''),
        ],
        [term('Live samples', 'sample, live sample'), count(s.live_samples)],
        ['Trend test', `${s.test}, p ${s.p_value < 1e-4 ? '< ' + plain(1e-4) : '= ' + plain(s.p_value)}`],
        ['Survived', `${plural(s.floors, 'collection')} of old space`],
        ['Share of heap growth', share(s.share_of_growth)],
        ['Share of the live heap', share(s.share_of_heap)],
        s.thread ? ['Thread', s.thread] : null,
      ]),
    ),
  );
}

// curves adds the curve of each verdict's site, if it is among those that changed most.
async function curves(main, list) {
  let t;
  try {
    const classes = [...new Set(list.map(s => s.class))].map(c => JSON.stringify(c)).join(', ');
    t = await get('trend', { by: 'type, site(1)', where: `type in [${classes}]` }, 'curves');
  } catch {
    return; // the cards say all the rest
  }
  if (mine !== main) return;
  main.querySelectorAll('#leaks > li').forEach((li, i) => {
    const s = list[i];
    const row = s.site.length && t.rows.find(x => x.path[0] === s.class && x.path[1] === frame(s.site[0]));
    if (!row) return;
    li.querySelector('.curve').append(
      spark(row.bytes, 260, 64, 'c3', t.at.map(k => Date.parse(t.collections[k].time))),
      h('p', { class: 'sub' }, `live bytes: ~${bytes(row.first_bytes)} → ~${bytes(row.last_bytes)}`),
    );
  });
}

// nothing is the view without a verdict.
function nothing(r) {
  const near = h('div', { id: 'misses' });
  const missed = list => [
    h('h3', {}, 'What grew and is not reported as a leak'),
    h('ul', { class: 'cards' }, list.map(m => h('li', {}, prose(m.sentence), h('details', {},
      h('summary', {}, 'Allocation site'), stack(m.site))))),
  ];
  const load = async e => {
    e.target.disabled = true;
    near.replaceChildren(h('p', { class: 'quiet' }, 'heapcam replays all objects. This takes longer …'));
    try {
      const l = await get('misses', {}, 'misses');
      const list = l.near_misses || [];
      near.replaceChildren(...(list.length ? missed(list) : [h('p', {}, 'Nothing grew enough to be a candidate.')]));
    } catch (e) {
      if (e.name !== 'AbortError') near.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
    }
  };
  const told = r.near_misses?.length;
  if (told) near.append(...missed(r.near_misses));
  return h(
    'div',
    {},
    h('p', { id: 'no-leak', class: 'verdict' }, prose(r.look_first)),
    r.collections.length
      ? h(
          'p',
          { class: 'bar' },
          told
            ? null
            : h('button', { type: 'button', id: 'near', click: load }, 'What grew, and why it is not reported'),
          r.watched ? null : h('a', { class: 'button', href: address('trends') }, 'What changed most'),
        )
      : null,
    near,
  );
}

export async function refresh(data) {
  const main = mine;
  main.replaceChildren();
  await show(main, data);
}
// update: other parameters of the address change nothing here.
export const update = () => {};
export function leave() {
  mine = null;
}
