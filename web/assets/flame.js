// A flame graph: nodes { key, kind, bytes, objects, children }, the first one on top. It is drawn for the width of its
// place, so that its labels are readable on a phone too.
import { h, bytes, share, plural } from './lib.js';

const high = 20, // of a row, in pixels
  least = 1.5; // width of a node that is drawn
const pen = document.createElement('canvas').getContext('2d');
pen.font = '11px system-ui, sans-serif';
const wide = t => pen.measureText(t).width;

// labels are the texts for a node, from the longest to the shortest. A frame loses its line first, then its package,
// then its class: the name of the method stays longest.
function labels(key) {
  const m = /^(.*?)((?:[^.]+\.)?)([^.(]+)(\([^()]*\))( …)?$/.exec(key);
  if (!m) {
    const short = key.replace(/^(?:[\w$]+\.)+(?=[\w$])/, '');
    return short === key ? [key] : [key, short];
  }
  const [, pkg, cls, method, at, more = ''] = m;
  return [pkg + cls + method + at + more, cls + method + at + more, cls + method, method];
}

// fit is the longest text that fits so many pixels. The shortest one is cut at the right, between two of its words.
export function fit(key, room) {
  if (room < 18) return '';
  const all = labels(key);
  const one = all.find(t => wide(t) <= room);
  if (one) return one;
  const words = all.at(-1).split(/(?<=[.$/(\[› ])|(?<=[a-z])(?=[A-Z])/u);
  for (let n = words.length - 1; n > 0; n--) {
    const t = words.slice(0, n).join('').trimEnd();
    if (t.length > 1 && wide(t + '…') <= room) return t + '…';
  }
  return '';
}

const packageOf = key => key.replace(/\(.*/, '').replace(/\.[^.]*$/, '').replace(/\.[A-Z][^.]*$/, '');
// colour is that of a node: of the application warm, by package; of the JDK grey; of a framework blue; unknown hatched.
function colour(n) {
  switch (n.kind) {
    case 'jdk':
      return '#c9cdd3';
    case 'library':
      return '#b9cbe6';
    case 'unknown':
      return 'url(#hatch)';
    case 'other':
      return '#bfe0d4';
  }
  let x = 0;
  for (const c of packageOf(n.key)) x = (x * 31 + c.codePointAt(0)) >>> 0;
  return `hsl(${10 + (x % 45)} 85% ${66 + (x % 4) * 4}%)`;
}

// Flame draws in a place of the page. pick(path) is called when a node is chosen, aside(node) for callers and callees.
export class Flame {
  // size(node) is what the width of a node shows, paint(node) its colour, tell(box) the sentence about it.
  constructor(parent, { label, pick, aside, total, up = false, size = n => n.bytes, paint = colour, tell }) {
    Object.assign(this, { pick, aside, total, up, size, paint, tell, match: null });
    this.svg = h('svg', { class: 'flame', role: 'tree', 'aria-label': label, xmlns: 'http://www.w3.org/2000/svg' });
    this.about = h('p', { class: 'sub about', 'aria-live': 'polite' });
    this.note = h('span', { class: 'sub matched', role: 'status' });
    parent.append(this.svg, this.about, this.note);
    this.svg.addEventListener('keydown', e => this.key(e));
    this.svg.addEventListener('mouseleave', () => this.say(null));
    this.watch = new ResizeObserver(() => {
      if (this.root && this.width !== this.svg.clientWidth) this.draw();
    });
    this.watch.observe(this.svg);
  }

  show(root, base = []) {
    Object.assign(this, { root, base });
    this.draw();
  }

  draw() {
    const w = (this.width = this.svg.clientWidth || 800);
    const boxes = (this.boxes = []);
    const place = (n, parent, path, x, width, y) => {
      const box = { n, parent, path, x, width, y };
      boxes.push(box);
      let at = x;
      const sum = Math.max(this.size(n), 1);
      for (const c of n.children || []) {
        const cw = (width * this.size(c)) / sum;
        if (cw >= least) place(c, box, [...path, c.key], at, cw, y + 1);
        at += cw;
      }
    };
    place(this.root, null, this.base, 0, w, 0);
    const rows = 1 + boxes.reduce((m, b) => Math.max(m, b.y), 0);
    const top = b => (this.up ? rows - 1 - b.y : b.y) * high;
    this.svg.setAttribute('height', rows * high);
    this.svg.setAttribute('viewBox', `0 0 ${w} ${rows * high}`);
    const words = [];
    const nodes = boxes.map((b, i) => {
      const t = fit(b.n.key, b.width - 6);
      if (t) words.push(h('text', { x: b.x + 3, y: top(b) + 14 }, t));
      b.e = h(
        'g',
        {
          role: 'treeitem',
          tabindex: i ? '-1' : '0',
          'aria-level': b.y + 1,
          'aria-label': this.describe(b),
          click: () => this.pick?.(b.path, b.n),
          mouseenter: () => this.say(b),
          focus: () => this.say(b),
        },
        h('rect', { x: b.x, y: top(b), width: Math.max(b.width - 0.5, 0.5), height: high - 1, fill: this.paint(b.n) }),
      );
      return b.e;
    });
    this.svg.replaceChildren(hatch(), ...nodes, h('g', { 'aria-hidden': 'true' }, words));
    this.words = words;
    if (this.match) this.find(this.match);
    this.say(null);
  }

  describe(b) {
    if (this.tell) return this.tell(b);
    const of = b.parent ? `, ${share(b.n.bytes / Math.max(b.parent.n.bytes, 1))} of its parent` : '';
    return (
      `${b.n.key}: ${b.n.estimated ? '~' : ''}${bytes(b.n.bytes)}, ${plural(b.n.objects, 'object')}, ` +
      `${share(b.n.bytes / Math.max(this.total, 1))} of the heap${of}` +
      (b.n.callers_drawn ? `, callers drawn for ${plural(b.n.callers_drawn, 'object')}` : '')
    );
  }

  say(b) {
    this.about.textContent = b ? this.describe(b) : 'Point at a box to see its figures. Click it to zoom in. ' +
      'What is narrower than a thousandth is left out.';
  }

  // find dims what a search does not match, and says which share of the heap matches.
  find(match) {
    this.match = match;
    let sum = 0;
    const inside = new Map();
    for (const b of this.boxes) {
      const hit = !!match && b.parent !== null && match(b.n.key);
      const below = b.parent ? inside.get(b.parent) : false;
      inside.set(b, hit || below);
      if (hit && !below) sum += this.size(b.n);
      b.e.setAttribute('class', !match || hit ? (hit ? 'hit' : '') : 'dim');
    }
    this.note.textContent = match ? `${share(sum / Math.max(this.size(this.root), 1))} matched` : '';
  }

  key(e) {
    const i = this.boxes.findIndex(b => b.e === e.target.closest('g[role]'));
    if (i < 0) return;
    const b = this.boxes[i];
    const same = this.boxes.filter(x => x.y === b.y).sort((x, y) => x.x - y.x);
    const beside = d => same[same.indexOf(b) + d];
    const child = () => this.boxes.find(x => x.parent === b);
    const to = {
      ArrowDown: () => (this.up ? b.parent : child()),
      ArrowUp: () => (this.up ? child() : b.parent),
      ArrowRight: () => beside(1),
      ArrowLeft: () => beside(-1),
      Home: () => this.boxes[0],
    }[e.key];
    if (to) {
      const next = to();
      if (next) {
        b.e.setAttribute('tabindex', '-1');
        next.e.setAttribute('tabindex', '0');
        next.e.focus();
      }
    } else if (e.key === 'Enter' || e.key === ' ') this.pick?.(b.path, b.n);
    else if (e.key === 's') this.aside?.(b.n);
    else if (e.key === 'Escape') this.pick?.([], this.root);
    else return;
    e.preventDefault();
  }

  end() {
    this.watch.disconnect();
  }
}

// hatch is the pattern of what is unknown.
function hatch() {
  const p = document.createElementNS('http://www.w3.org/2000/svg', 'pattern');
  for (const [k, v] of Object.entries({ id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse',
    patternTransform: 'rotate(45)' })) p.setAttribute(k, v);
  p.append(h('rect', { width: 6, height: 6, fill: '#e4e6ea' }), h('rect', { width: 2, height: 6, fill: '#b4b9c0' }));
  return p;
}
