// Leaks: the sites that grow, each with the report's sentence, its evidence and its stack.
import { h, bytes, count, plural, share, plain, span, stack, facts, frame, address } from './lib.js';

export function show(main, data) {
  const r = data.report,
    list = r.verdicts;
  main.append(h('h2', {}, 'Leaks'));
  if (!list.length) {
    main.append(h('p', { id: 'no-leak' }, r.look_first));
    return;
  }
  main.append(
    h(
      'p',
      { class: 'sub' },
      `Data structures whose surviving objects grow throughout the window, or filled the heap. Old space was ` +
        `collected ` +
        `${plural(r.old_collections, 'time')} in the window.`,
    ),
  );
  main.append(
    h(
      'ol',
      { class: 'cards', id: 'leaks' },
      list.map((s, i) =>
        h(
          'li',
          { class: 'leak' },
          h('p', {}, h('b', {}, `${i + 1}.`), s.sentence),
          facts([
            ['Verdict', s.kind],
            ['Class', s.class + (s.loader ? ` (${s.loader})` : '')],
            [
              'Growth rate',
              `${bytes(s.bytes_per_second)}/s (${bytes(s.bytes_per_second_low)}/s to ` +
                `${bytes(s.bytes_per_second_high)}/s)`,
            ],
            ['Growth in the window', '+' + bytes(s.grown_bytes)],
            ['Share of heap growth', share(s.share_of_growth)],
            ['Share of the live heap', share(s.share_of_heap)],
            s.thread ? ['Thread', s.thread] : null,
            s.held_by ? ['Held by', s.held_by] : null,
            ['Confidence', plain(s.confidence)],
            ['Live samples', count(s.live_samples)],
            ['Trend test', `${s.test}, p ${s.p_value < 1e-4 ? '< ' + plain(1e-4) : '= ' + plain(s.p_value)}`],
            ['Survived', `${plural(s.floors, 'collection')} of old space`],
            s.seconds_to_exhaustion === null ? null : ['Heap full in', span(s.seconds_to_exhaustion * 1e9)],
          ]),
          h('details', { open: i === 0 }, h('summary', {}, 'Allocation site'), stack(s.site)),
          s.site.length
            ? h(
                'p',
                {},
                h(
                  'a',
                  {
                    class: 'history',
                    href: address('trends', {
                      by: 'type, site(1)',
                      filter: null,
                      row: JSON.stringify([s.class, frame(s.site[0])]),
                    }),
                  },
                  'Site history',
                ),
              )
            : null,
        ),
      ),
    ),
  );
}
export function refresh(data, params) {
  const main = document.getElementById('main').firstElementChild;
  main.replaceChildren();
  show(main, data, params);
}
