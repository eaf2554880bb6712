// Site coverage in plain words: what is known, inferred and unknown, at a collection and over the window.
import { h, go, bytes, count, share, when, address, facts, keys } from './lib.js';
import { Timeline } from './charts.js';

let line = null,
  parent;

export function show(main, data, params) {
  parent = main;
  const r = data.report,
    rows = r.collections;
  main.append(h('h2', {}, 'How far can the figures be trusted?'));
  const known = rows.filter(c => c.known);
  const gc = params.get('at');
  const c = known.find(c => String(c.gc) === gc) || known[known.length - 1];
  const words = h('div', { class: 'words', id: 'words' });
  main.append(words);
  if (c) {
    const q = c.coverage,
      all = q.exact_bytes + q.inferred_bytes + q.before_tape_bytes + q.unknown_bytes || 1;
    words.append(
      h('h3', {}, `After collection ${count(c.gc)}`, ' (', when(c.time), ')'),
      h(
        'p',
        {},
        `Types, sizes and numbers of all ${count(c.objects)} live objects (${bytes(c.bytes)}) are known exactly. ` +
          `“Live” means not known dead: in old space a dead object stays until its space is collected.`,
      ),
      h(
        'p',
        {},
        `Where they were allocated is known exactly of ${share(q.exact_bytes / all)} of the live bytes ` +
          `(${count(q.exact_objects)} objects carry a sample). ` +
          `Of ${share(q.inferred_bytes / all)} it is inferred: each object counts with the probability of the ` +
          `likeliest site of its class. ` +
          `${share(q.unknown_bytes / all)} were allocated during the recording but not sampled: figures by site are ` +
          `estimates for them, and the tables show their 95 % intervals. ` +
          `At most ${share(q.before_tape_bytes / all)} are older than the recording: nothing can be said of their ` +
          `sites.`,
      ),
      bar(
        [
          ['k2', 'exact', q.exact_bytes],
          ['k5', 'inferred', q.inferred_bytes],
          ['k1', 'unknown', q.unknown_bytes],
          ['k7', 'before the tape, at most', q.before_tape_bytes],
        ],
        all,
      ),
    );
    if (!c.known) words.append(h('p', {}, 'not known'));
  } else words.append(h('p', {}, 'The state is known after no collection of this recording.'));
  words.append(
    h('h3', {}, 'Over the window'),
    h(
      'p',
      {},
      [
        `${count(rows.length)} collections were recorded and ${count(r.lost_epochs)} were lost. `,
        r.missed_collections
          ? `The JVM reported no events for ${count(r.missed_collections)} more: their pauses are unknown. `
          : '',
        r.collections_of_unknown_state
          ? `After ${count(r.collections_of_unknown_state)} of them the state is not known: something was lost ` +
            `before them, and no sync point had come yet. `
          : 'The state is known after each of them. ',
        `${count(r.samples)} allocations were sampled, ${count(r.lost_samples)} samples were lost. `,
        rows.length
          ? `${count(rows.filter(c => c.sync_point).length)} sync points list the whole heap; each compared what ` +
            `was replayed with what was there.`
          : '',
      ].join(''),
    ),
    h(
      'p',
      {},
      `Old space was collected ${count(r.old_collections)} times in the window; ` +
        (r.old_collections
          ? 'what outlived that was reachable then.'
          : 'what died there since is still counted as live.'),
    ),
    facts([
      ['Samples', count(r.samples)],
      ['Lost samples', count(r.lost_samples)],
      ['Lost collections', count(r.lost_epochs)],
      ['Missed collections', count(r.missed_collections)],
      ['State unknown after', count(r.collections_of_unknown_state)],
      ['Damages', count(r.damage.length)],
      ['End', r.end],
    ]),
  );
  if (r.damage.length)
    words.append(
      h('h3', {}, 'What can not be read'),
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
        ['inferred', 'c5', 'inferred'],
        ['before the tape, at most', 'c7', 'before_tape'],
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
        chart('Live bytes by what is known of their site', 'bytes'),
        chart('Live objects by what is known of their site', 'objects'),
      ],
      { choose: (a, b) => go('coverage', { at: known[b].gc }), label: `${known.length} collections` },
    );
    line.describeAt = i => `collection ${known[i].gc}: `;
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
