// Parts that show a change: the net change in large figures, the bar of what died, stayed and was born, and a flame
// graph coloured by change.
import { h, go, get, bytes, count, plural, change, keys, state } from './lib.js';
import { Flame } from './flame.js';

// range writes a figure, or its lower and upper bound.
export const range = (r, show) => (r.low === r.high ? show(r.value) : `${show(r.low)} to ${show(r.high)}`);

// net is the first thing to read: by how much the live bytes and objects changed.
export function net(tree) {
  const of = u => tree[u].after.value - tree[u].before.value;
  return large(of('bytes'), `${change(of('objects'), n => plural(n, 'object'))}; live bytes from ` +
    `${bytes(tree.bytes.before.value)} to ${bytes(tree.bytes.after.value)}`);
}

export const large = (n, about) =>
  h('p', { class: 'net' }, change(n, bytes) || '0 B', ' ', h('small', {}, about));

const parts = [
  ['died', 'died', 'died', 'live after the first of the two collections, dead after the second'],
  ['permanent', 'perm', 'stayed', 'live after both'],
  ['born', 'born', 'born', 'allocated in between, live after the second'],
];

// figures is the legend of the bars, with the sums.
export const figures = (t, show) =>
  h('p', { class: 'bar', id: 'sums' }, keys(...parts.map(([k, cls, word, about]) =>
    ['k' + cls, `${range(t[k], show)} ${word}`, `${word}: ${about}`])));

// bars draws what died, stayed and was born as one bar. A whisker at the end of a part shows the range of the part.
export function bars(c, widest, key, show) {
  widest ??= Math.max(1, c.died.high + c.permanent.high + c.born.high);
  const scale = 1000 / widest;
  let x = 0;
  const rects = [],
    whiskers = [];
  for (const [i, [k, cls]] of parts.entries()) {
    const r = c[k],
      y = 4 + 3 * i, // whiskers of neighbours overlap

      w = r.value * scale;
    if (w > 0) rects.push(h('rect', { x, y: 2, width: w, height: 10, fill: `var(--${cls})` }));
    if (r.high > r.low) {
      const [a, b] = [x + r.low * scale, x + r.high * scale];
      const line = (x1, y1, x2, y2) => h('line', { x1, y1, x2, y2 });
      whiskers.push(line(a, y, b, y), line(a, y - 2, a, y + 2), line(b, y - 2, b, y + 2));
    }
    x += w;
  }
  return h(
    'svg',
    {
      class: 'dpb',
      viewBox: '0 0 1000 14',
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${key}: ` + parts.map(([k, , word]) => `${word} ${range(c[k], show)}`).join(', '),
    },
    rects,
    whiskers,
  );
}

// paint is the colour of a node: orange grew, blue shrank, grey is unchanged. The stronger, the larger the change is
// beside the larger of the two sizes.
function paint(n) {
  const was = n.before_bytes || 0,
    x = (n.bytes - was) / Math.max(n.bytes, was, 1);
  if (Math.abs(x) < 0.02) return '#d5d8dc';
  return x > 0 ? `hsl(24 95% ${86 - 26 * x}%)` : `hsl(205 85% ${86 + 28 * x}%)`;
}

const size = n => n.bytes + (n.before_bytes || 0);
const tell = b => {
  const was = b.n.before_bytes || 0;
  return (
    `${b.n.key}: ${b.n.estimated ? '~' : ''}${bytes(was)} before, ${bytes(b.n.bytes)} after: ` +
    `${change(b.n.bytes - was, bytes) || 'no change'}, ${count(b.n.before_objects || 0)} → ` +
    plural(b.n.objects, 'object') +
    (b.n.callers_drawn ? `, callers drawn for ${plural(b.n.callers_drawn, 'object')}` : '')
  );
};

// Changes is the flame graph of two heap states.
export class Changes {
  constructor(parent, view) {
    Object.assign(this, { view, key: '', flame: null });
    this.bar = h('div', { class: 'bar' });
    this.place = h('div', { class: 'flames' });
    parent.append(
      h('h3', {}, 'Where it changed'),
      h(
        'p',
        { class: 'sub' },
        'Shrank ',
        h('i', { class: 'scale', role: 'img', 'aria-label': 'from blue over grey to orange' }),
        ' grew. A box is as wide as its bytes before and after together.',
      ),
      this.bar,
      this.place,
    );
  }

  // draw shows the answer to a question; it returns the whole flame graph's root.
  async draw(question, params) {
    const part = path(params),
      all = params.get('jdk') === '1';
    const ask = { ...question, fold: all ? null : 1, path: part.length ? JSON.stringify(part) : null };
    const key = JSON.stringify(ask);
    if (key === this.key) return this.root;
    let r;
    try {
      r = await get('change', ask, 'change');
    } catch (e) {
      if (e.name !== 'AbortError' && !e.field)
        this.place.replaceChildren(h('p', { class: 'bad', role: 'alert' }, e.message));
      return null;
    }
    if (this.ended) return null;
    this.key = key;
    this.root = r;
    this.ways(part, all);
    this.flame?.end();
    this.place.replaceChildren();
    this.flame = new Flame(this.place, {
      label: 'Bytes before and after. Arrow keys move, Enter zooms in.',
      total: size(r.tree),
      size,
      paint,
      tell,
      pick: p => go(this.view, { part: p.length ? JSON.stringify(p) : null }, false),
    });
    this.flame.show(r.tree, part);
    return r;
  }

  ways(part, all) {
    const button = (t, on, change) =>
      h(
        'button',
        { type: 'button', class: on === null ? 'crumb' : null, 'aria-pressed': on === null ? null : String(on),
          click: () => go(this.view, change, on !== null) },
        t,
      );
    this.bar.replaceChildren(
      button('All JDK and framework frames', all, { jdk: all ? null : '1', part: null }),
      ...(part.length ? [button('Whole heap', null, { part: null })] : []),
      ...part.map((k, i) => button(k, null, { part: JSON.stringify(part.slice(0, i + 1)) })),
    );
  }

  end() {
    this.ended = true;
    this.flame?.end();
  }
}

function path(params = state().params) {
  try {
    const p = JSON.parse(params.get('part') || '[]');
    return Array.isArray(p) ? p : [];
  } catch {
    return [];
  }
}
