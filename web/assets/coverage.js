// Site coverage: the share of live bytes whose allocation site is known, after a collection and over the window.
import { h, go, bytes, count, plural, share, when, facts, keys, unknown } from './lib.js';
import { Timeline } from './charts.js';

let line = null,
  parent;

export function show(main, data, params) {
  parent = main;
  const r = data.report,
    rows = r.collections;
  main.append(h('h2', {}, 'Site coverage: for how much of the live heap is the allocation site known?'));
  const known = rows.filter(c => c.known);
  const gc = params.get('at');
  const c = known.find(c => String(c.gc) === gc) || known[known.length - 1];
  const text = h('div', { class: 'words', id: 'words' });
  main.append(text);
  if (c) {
    const q = c.coverage,
      all = q.exact_bytes + q.proven_bytes + q.inferred_bytes + q.candidates_bytes +
        q.before_recording_bytes + q.unknown_bytes || 1;
    text.append(
      h('h3', {}, `After collection ${count(c.gc)}`, ' (', when(c.time), ')'),
      h(
        'p',
        {},
        `The classes, sizes and numbers of all ${plural(c.objects, 'live object')} (${bytes(c.bytes)}) are exact. ` +
          `An object counts as live until a collection shows that it is dead. Objects in old space can be dead ` +
          `before that.`,
      ),
      h(
        'p',
        {},
        'The allocation sites of the live bytes:',
      ),
      h(
        'ul',
        {},
        h(
          'li',
          {},
          `${share(q.exact_bytes / all)} exact: the object itself was sampled ` +
            `(${plural(q.exact_objects, 'object')}).`,
        ),
        q.proven_bytes
          ? h(
              'li',
              {},
              `${share(q.proven_bytes / all)} proven: only one place in the code can have made the object ` +
                `(${plural(q.proven_objects, 'object')}). Its callers are not known.`,
            )
          : null,
        h(
          'li',
          {},
          `${share(q.inferred_bytes / all)} inferred: each object counts with the probability of the most likely ` +
            `site of its class.`,
        ),
        q.candidates_bytes
          ? h(
              'li',
              {},
              `${share(q.candidates_bytes / all)} of few candidates: one of two to four places in the code made the ` +
                `object (${plural(q.candidates_objects, 'object')}).`,
            )
          : null,
        h(
          'li',
          {},
          `${share(q.unknown_bytes / all)} unknown: the object was allocated during the recording but not sampled. ` +
            `Figures by site are estimates, shown with their 95 % interval.`,
        ),
        h(
          'li',
          {},
          `at most ${share(q.before_recording_bytes / all)} before the recording: the object may be older than the ` +
            `recording, so its site is not recorded.`,
        ),
      ),
      bar(
        [
          ['k2', 'exact', q.exact_bytes],
          ...(q.proven_bytes ? [['k6', 'proven', q.proven_bytes]] : []),
          ['k5', 'inferred', q.inferred_bytes],
          ...(q.candidates_bytes ? [['k3', 'of few candidates', q.candidates_bytes]] : []),
          ['k1', 'unknown', q.unknown_bytes],
          ['k7', 'before the recording, at most', q.before_recording_bytes],
        ],
        all,
      ),
    );
  } else text.append(h('p', {}, unknown(r)));
  text.append(
    h('h3', {}, 'Is data missing?'),
    h(
      'p',
      {},
      [
        `Collections: ${count(rows.length)} recorded, ${count(r.lost_epochs)} lost, ` +
          `${count(r.missed_collections)} missed. `,
        r.missed_collections ? 'The pauses of missed collections are unknown. ' : '',
        r.collections_of_unknown_state
          ? `The heap state is unknown for ${plural(r.collections_of_unknown_state, 'collection')}: data before them ` +
            `is missing, and no sync point was recorded since. `
          : known.length
            ? 'The heap state is known after each recorded collection. '
            : '',
        `Samples of allocations: ${count(r.samples)} recorded, ${count(r.lost_samples)} lost. `,
        known.length
          ? `Sync points: ${count(rows.filter(c => c.sync_point).length)}. A sync point lists all live objects, and ` +
            `heapcam compares its replay with the list.`
          : '',
      ].join(''),
    ),
    rows.length
      ? h(
          'p',
          {},
          r.old_collections
            ? `Old space was collected ${plural(r.old_collections, 'time')} in the window. An object that survived ` +
                `such a collection was still reachable.`
            : 'Old space was not collected in the window. Objects that died there still count as live.',
        )
      : '',
    facts([
      ['Samples', count(r.samples)],
      ['Lost samples', count(r.lost_samples)],
      ['Lost collections', count(r.lost_epochs)],
      ['Missed collections', count(r.missed_collections)],
      ['Heap state unknown', plural(r.collections_of_unknown_state, 'collection')],
      ['Damaged sections', count(r.damage.length)],
      ['End', r.end],
    ]),
  );
  if (r.damage.length)
    text.append(
      h('h3', {}, 'Damaged sections'),
      h(
        'ul',
        { id: 'damage' },
        r.damage.slice(0, 200).map(d => h('li', { class: 'name bad' }, d)),
      ),
    );
  if (known.length > 1) {
    const times = known.map(c => Date.parse(c.time) / 1000);
    for (let i = 1; i < times.length; i++) if (times[i] <= times[i - 1]) times[i] = times[i - 1] + 1e-4;
    const chart = (title, unit) => ({
      title,
      binary: unit === 'bytes',
      format: unit === 'objects' ? n => count(Math.round(n)) : bytes,
      stacked: true,
      height: 150,
      series: [
        ['exact', 'c2', 'exact'],
        ...(known.some(c => c.coverage.proven_objects) ? [['proven', 'c6', 'proven']] : []),
        ['inferred', 'c5', 'inferred'],
        ['before the recording, at most', 'c7', 'before_recording'],
        ['unknown', 'c1', 'unknown'],
      ].map(([name, cls, k]) => ({
        name,
        class: cls,
        kind: 'area',
        values: known.map(c => c.coverage[`${k}_${unit}`]),
      })),
    });
    const box = h('div', {});
    main.append(box);
    line = new Timeline(
      box,
      times,
      [
        chart('Live bytes by site coverage', 'bytes'),
        chart('Live objects by site coverage', 'objects'),
      ],
      { choose: (a, b) => go('coverage', { at: known[b].gc }), label: plural(known.length, 'collection') },
    );
    line.describeAt = i => `collection ${count(known[i].gc)}: `;
    const i = known.indexOf(c);
    line.select(i, i);
  }
}

function bar(parts, all) {
  return h(
    'div',
    {},
    h(
      'svg',
      {
        class: 'dpb',
        viewBox: '0 0 1000 14',
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': parts.map(([, t, v]) => `${t} ${share(v / all)}`).join(', '),
      },
      (() => {
        let x = 0;
        return parts.map(([k, , v]) => {
          const w = (1000 * v) / all;
          const e = h('rect', { x, y: 0, width: w, height: 14, fill: `var(--c${k.slice(1)})` });
          x += w;
          return e;
        });
      })(),
    ),
    h('p', { class: 'sub bar' }, keys(...parts.map(([k, t, v]) => [k, `${t} ${share(v / all)}, ${bytes(v)}`]))),
  );
}

export function update(data, params) {
  leave();
  parent.replaceChildren();
  show(parent, data, params);
}
export const refresh = update;
export function leave() {
  line?.end();
  line = null;
}
