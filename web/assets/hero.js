// The top of the overview: the first headline with what a reader needs to know at once.
import { h, address, bytes, count, share, span, when, clock, facts, frame, prose } from './lib.js';

// The word before a headline, by its kind.
export const kinds = {
  leak: 'Leak',
  suspect: 'Possible leak',
  growth: 'Growth',
  storm: 'Frequent GC',
  gap: 'Missing data',
  damage: 'Damage',
  quiet: 'Result',
  unknown: 'Result',
  empty: 'No data',
  used: 'Heap in use',
  cost: 'heapcam itself',
  likely: 'Not confirmed yet',
};

// hero is what a reader needs first: does the program leak; what, where, who holds it, since when and until when; how
// much of the time pauses took, if it was much; and what heapcam itself cost.
export function hero(data, storm) {
  const r = data.report,
    v = r.verdicts[0],
    first = data.headlines[0];
  const kind = first?.kind || 'empty';
  const exhausted = r.heap_full;
  const until = exhausted?.until_end
    ? h('span', {}, when(exhausted.time), ', when the heap was full')
    : h('span', {}, when(r.to), ', the end of the recording');
  const own = v?.site.find(f => !/^(java|javax|jdk|sun|com\.sun|kotlin|scala)\./.test(f.class)) || v?.site[0];
  const c = r.cost,
    stopped = c.probe_ns + c.sync_ns + c.walks_ns,
    whole = r.sampling_known_until_ns === null, // what sampling took is known to the end
    all = r.verdicts.reduce((n, v) => n + v.share_of_growth, 0);
  return h(
    'section',
    { class: 'hero ' + kind, id: 'hero' },
    h('p', { class: 'verdict' }, v ? null : h('b', {}, kinds[kind] + ' '), prose(v ? v.sentence : first?.text || '')),
    storm ? h('p', { class: 'storm' }, h('a', { href: link(storm.view) }, told(storm))) : null,
    v
      ? facts([
          ['What', r.verdicts[0].members?.map(m => m.class).filter((c, i, a) => a.indexOf(c) === i).slice(0, 3)
            .join(', ') || v.class],
          ['Allocated in', own ? frame(own) : 'allocation site unknown'],
          [
            'Held by',
            heldBy(r, v),
          ],
          ['Since', began(r, v)],
          ['Until', until],
          exhausted && v.kind === 'fills-heap' ? ['Full at', fullAt(exhausted)] : null,
          v.share_of_growth > 0 && v.kind !== 'fills-heap'
            ? [
                'Part of the growth',
                share(v.share_of_growth) + ' of what the whole heap grew in this recording' +
                  (r.verdicts.length > 1
                    ? `; all ${count(r.verdicts.length)} verdicts: ${share(Math.min(1, all))}`
                    : ''),
              ]
            : null,
        ])
      : null,
    c.span_ns
      ? facts([
          [
            'heapcam itself',
            h(
              'span',
              { id: 'cost' },
              `took ${whole ? '' : 'at least '}${share((stopped + c.sampling_ns) / c.span_ns)} of the time: ` +
                `${span(stopped)} in pauses` +
                (whole || c.sampling_ns
                  ? ` and ${whole ? '' : 'at least '}${span(c.sampling_ns)} for sampling. `
                  : '. What sampling took is not recorded. ') +
                `All GC pauses of the recording together took ` +
                `${share(r.pause_ns / c.span_ns)} of its time, heapcam’s part included. ` +
                `heapcam’s default budget is ${share(budget)}.`,
              expensive(c),
            ),
          ],
        ])
      : null,
    h(
      'p',
      { class: 'bar' },
      data.report.collections.length
        ? h('a', { class: 'button', href: address('leaks') }, v ? 'Evidence and stack' : 'What was checked')
        : null,
      v ? h('a', { class: 'button', href: address('state', { by: 'site, type', at: null }) }, 'Heap by code') : null,
    ),
  );
}

// fullAt says how much of the heap was in use when it was full, which is less than its maximum.
const fullAt = x =>
  `${bytes(x.used_bytes)} of ${bytes(x.max_bytes)}: ` +
    (x.large_object
      ? 'the rest is free, but had no room for one large object'
      : 'the collector cannot use all of the rest, or hardly frees anything any more');

// heldBy says what holds the objects of a verdict, and leads to all of their holders.
export function heldBy(r, v) {
  const to = { href: address('retained', { site: v.site.length ? frame(v.site[0]) : null }) };
  if (v.held_by) return h('a', to, v.held_by);
  if (r.reference_listing) return h('a', to, 'no single object holds most of it: all its holders');
  return h('span', { class: 'quiet' }, 'not recorded (', h('code', {}, 'heapcam references JVM'), ' records it)');
}

// budget is the share of the time that heapcam keeps within unless the user asks for more.
const budget = 0.02;

// expensive says why heapcam took more than its default budget; nothing if it did not.
function expensive(c) {
  const parts = [
    [c.sampling_ns, 'sampling. A longer sampling interval costs less.'],
    [c.probe_ns, 'reading objects in pauses. The depth “survivors” reads few, “samples” none.'],
    [c.sync_ns, 'sync points, which list all objects. A larger max_trace_size needs fewer.'],
    [c.walks_ns, 'sync points for which heapcam stopped the program. “emergency: off” forbids them.'],
  ];
  const all = parts.reduce((n, [ns]) => n + ns, 0),
    [, most] = parts.reduce((a, b) => (b[0] > a[0] ? b : a));
  if (all <= budget * c.span_ns) return null;
  return [
    ` Most of the cost is ${most} `,
    c.span_ns < 60e9 ? 'The recording is short, so the start counts for much. ' : null,
    h('a', { href: address('cost') }, 'The cost over time'),
  ];
}

// began says when the growth of a verdict began. Known are the earliest and the latest time.
export function began(r, v) {
  const [from, to] = [v.onset_from, v.onset_to].map(Date.parse),
    atStart = from - Date.parse(r.from) < 1000;
  if (v.sentence.includes('since the JVM started')) return h('span', {}, when(r.from), ', when the JVM started');
  if (to - from < 1000) return h('span', {}, when(from), atStart ? ' (the start of the recording)' : '');
  const earlier = atStart
    ? ', perhaps since the start of the recording'
    : `, or up to ${span(1e6 * (to - from))} earlier`;
  return h('span', {}, when(to), earlier);
}

// told is the text of a headline. That of frequent collections lacks when they began.
export const told = x => (x.kind === 'storm' ? [prose(x.text), ', from ', clock(x.since), ' on.'] : prose(x.text));

// link is the address of the view that a headline names.
export function link(view) {
  const [v, q] = view.split('?');
  return address(v, Object.fromEntries(new URLSearchParams(q || '')));
}
