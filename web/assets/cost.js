// Threads, pauses, cost: who allocates, by thread; the collections by cause; and what heapcam itself cost over time.
import { h, get, bytes, count, plural, share, span, clock, when, address, facts, term, win } from './lib.js';
import { Timeline, spark } from './charts.js';
import { overhead } from './timeline.js';

let box,
  line,
  answer = null; // of api/cost

export async function show(main, d, params) {
  const mine = (box = {
    sum: h('p', { id: 'own', class: 'quiet', 'aria-live': 'polite' }, 'Adding up the cost …'),
    causes: h('div', { id: 'causes' }),
    chart: h('div', { id: 'minutes' }),
    threads: h('div', { id: 'threads' }),
    events: h('div', { id: 'events' }),
  });
  main.append(
    h('h2', {}, 'Who allocates, who pauses, and what heapcam costs'),
    h('h3', {}, 'Threads that allocate'),
    box.threads,
    h('h3', {}, 'GC pauses by cause'),
    box.causes,
    h('h3', {}, 'What heapcam itself cost'),
    box.sum,
    box.chart,
    box.events,
  );
  causes(d);
  let r;
  try {
    r = await get('cost', {}, 'cost');
  } catch (e) {
    if (e.name !== 'AbortError' && box === mine)
      box.sum.replaceChildren(h('span', { class: 'bad', role: 'alert' }, e.message));
    return;
  }
  if (box !== mine) return;
  answer = r;
  own(r);
  threads(r);
}

export function update(d) {
  if (!box) return;
  causes(d);
  if (answer) threads(answer);
  line?.select(-1, -1);
}

export const refresh = (d, params) => {
  const main = document.getElementById('main').firstElementChild;
  leave();
  main.replaceChildren();
  return show(main, d, params);
};

const table = (label, heads, rows) =>
  h(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, heads.map(([t, n]) => h('th', { scope: 'col', class: n ? 'n' : null }, t)))),
      h('tbody', {}, rows),
    ),
  );

// inside says whether a time, in seconds, is in the part of the window that the address names.
function inside() {
  const w = win();
  return w ? t => t >= w[0] && t <= w[1] : () => true;
}

function causes(d) {
  const within = inside(),
    by = new Map();
  let first = null,
    last = null;
  for (const c of d.report.collections) {
    const t = Date.parse(c.time) / 1000;
    if (!within(t)) continue;
    first ??= t;
    last = t + c.pause_ns / 1e9;
    const key = c.kind + '\0' + c.cause;
    if (!by.has(key)) by.set(key, { kind: c.kind, cause: c.cause, pauses: [], sum: 0, own: 0 });
    const x = by.get(key);
    x.pauses.push(c.pause_ns);
    x.sum += c.pause_ns;
    x.own += overhead(c);
  }
  const w = win(),
    time = w ? 1e9 * (w[1] - w[0]) : d.report.window_ns || 1;
  const rows = [...by.values()].sort((a, b) => b.sum - a.sum);
  const at = (x, q) => x[Math.min(x.length - 1, Math.floor(q * x.length))];
  box.causes.replaceChildren(
    rows.length
      ? table(
          'GC pauses by cause',
          [['Cause'], ['Kind'], ['Collections', 1], ['Pauses', 1], ['Share of time', 1], ['Median', 1],
            ['99th percentile', 1], ['Longest', 1], ['Added by heapcam', 1]],
          rows.map(x => {
            x.pauses.sort((a, b) => a - b);
            return h(
              'tr',
              {},
              h('td', { class: 'name' }, x.cause),
              h('td', {}, x.kind),
              h('td', { class: 'n' }, count(x.pauses.length)),
              h('td', { class: 'n' }, span(x.sum)),
              h('td', { class: 'n' }, share(x.sum / time)),
              h('td', { class: 'n' }, span(at(x.pauses, 0.5))),
              h('td', { class: 'n' }, span(at(x.pauses, 0.99))),
              h('td', { class: 'n' }, span(x.pauses.at(-1))),
              h('td', { class: 'n' }, span(x.own)),
            );
          }),
        )
      : h('p', { class: 'quiet' }, 'No collection in this time.'),
  );
}

function threads(r) {
  const within = inside();
  const t = i => (r.from_ms + (i + 0.5) * r.step_ms) / 1000;
  const part = x => {
    let sum = 0,
      samples = 0,
      over = [];
    x.over.forEach((v, i) => {
      if (!within(t(i))) return;
      sum += v;
      samples += x.counts[i];
      over.push(v);
    });
    return { name: x.thread, sum, samples, over };
  };
  const all = [...r.threads];
  if (r.rest) all.push({ ...r.rest, thread: `the other ${count(r.all - r.threads.length)}` });
  const rows = all.map(part).filter(x => x.samples),
    whole = rows.reduce((n, x) => n + x.sum, 0) || 1;
  rows.sort((a, b) => b.sum - a.sum);
  box.threads.replaceChildren(
    h(
      'p',
      { class: 'sub' },
      `${plural(r.all, 'thread name')} with samples. All objects count, those that died too. Bytes are estimated ` +
        `from samples.`,
    ),
    rows.length
      ? table(
          'Threads that allocate',
          [['Thread'], ['Allocated', 1], ['Share', 1], ['Precision'], ['Over time'], ['Now in the heap']],
          rows.map(x =>
            h(
              'tr',
              {},
              h('td', { class: 'name' }, x.name),
              h('td', { class: 'n' }, '~' + bytes(x.sum)),
              h('td', { class: 'n' }, share(x.sum / whole)),
              h('td', {}, h('span', { class: 'sub' }, interval(x))),
              h('td', {}, spark(x.over)),
              h(
                'td',
                {},
                h(
                  'a',
                  { href: address('state', { by: 'thread, site, type', part: JSON.stringify([x.name]), at: null }) },
                  'What lives',
                ),
              ),
            ),
          ),
        )
      : h('p', { class: 'quiet' }, 'No samples in this time.'),
  );
}

// interval is the 95 % interval of an estimate from so many samples.
function interval({ sum, samples }) {
  const off = 1.96 / Math.sqrt(samples);
  return `${bytes(Math.max(0, sum * (1 - off)))} to ${bytes(sum * (1 + off))}, ${plural(samples, 'sample')}`;
}

const stopped = m => m.probe_ns + m.sync_ns + m.walks_ns;

function own(r) {
  const c = r.cost,
    t = c.total,
    known = c.sampling_known_until_ns === null,
    wall = ns => c.t0_wall_ms + ns / 1e6;
  box.sum.className = '';
  box.sum.replaceChildren(
    h('b', {}, `${known ? '' : 'At least '}${share((stopped(t) + t.sampling_ns) / (t.span_ns || 1))}`),
    ` of the recorded time. heapcam stopped the application for ${span(stopped(t))}` +
      (known || t.sampling_ns ? ` and sampling took ${span(t.sampling_ns)}` : '') +
      `. It lengthened no pause by more than ${span(t.longest_ns)}.` +
      (known
        ? ''
        : t.sampling_ns
          ? ` The cost of sampling is known until ${clock(wall(c.sampling_known_until_ns))}.`
          : ' What sampling took is not recorded.'),
  );
  line?.end();
  line = null;
  box.chart.replaceChildren();
  const m = (c.minutes || []).filter(m => m.span_ns >= 1e9);
  if (m.length > 2) {
    const of = f => m.map(x => f(x) / x.span_ns);
    line = new Timeline(
      box.chart,
      m.map(x => wall(x.from_ns) / 1000),
      [
        {
          title: 'Share of each minute',
          format: share,
          stacked: true,
          height: 120,
          series: [
            { name: 'in ordinary pauses', class: 'c0', kind: 'steps', values: of(x => x.probe_ns) },
            { name: 'sync points', class: 'c2', kind: 'steps', values: of(x => x.sync_ns) },
            { name: 'own stops', class: 'c3', kind: 'steps', values: of(x => x.walks_ns) },
            { name: 'sampling', class: 'c1', kind: 'steps', values: of(x => x.sampling_ns) },
          ],
        },
      ],
      { label: 'over the minutes of the recording', choose: () => {} },
    );
  } else
    box.chart.append(
      facts([
        ['In ordinary pauses', span(t.probe_ns)],
        [term('Sync points', 'sync point'), `${count(t.sync_points)}: ${span(t.sync_ns)}`],
        ['Own stops', span(t.walks_ns)],
        ['Sampling', known || t.sampling_ns ? span(t.sampling_ns) : 'not recorded'],
      ]),
    );
  events(c, wall);
}

const most = 200; // events that are listed
function events(c, wall) {
  const e = c.events || [];
  if (!e.length) return;
  box.events.replaceChildren(
    h(
      'details',
      {},
      h('summary', {}, `What changed the cost: ${plural(e.length, 'event')}`),
      table(
        'Events',
        [['Time'], ['Event']],
        e.slice(0, most).map(x => h('tr', {}, h('td', {}, when(wall(x.time_ns))), h('td', { class: 'name' }, x.text))),
      ),
      e.length > most
        ? h('p', { class: 'sub' }, `${count(e.length - most)} more: `, h('code', {}, 'heapcam cost --json'),
          ' prints all.')
        : null,
    ),
  );
}

export function leave() {
  line?.end();
  line = box = answer = null;
}
