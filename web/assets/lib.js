// What all views use: elements, formats of figures, requests, and the page's address, which holds the page's state.

// visible escapes the characters of a text that a reader cannot see: control and format characters (bidirectional
// controls, zero-width characters), variation selectors, blank letters. Names come from a recording, and a name must
// not reorder the text beside it or look like another name. Spaces are not escaped.
const hidden =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800]/gu;
export const visible = s =>
  s.replace(hidden, c => {
    const n = c.codePointAt(0),
      x = n.toString(16);
    return n < 0x80 ? '\\x' + x.padStart(2, '0') : n > 0xffff ? '\\U' + x.padStart(8, '0') : '\\u' + x.padStart(4, '0');
  });
// Attributes that a reader sees or hears.
const readable = ['title', 'aria-label', 'placeholder'];

// h makes an element. Text children stay text, never markup, and are made visible. An attribute whose value is a
// function is an event listener; one whose value is null or false is left out.
export function h(tag, attrs, ...children) {
  const e =
    tag === 'svg' || h.svg.has(tag)
      ? document.createElementNS('http://www.w3.org/2000/svg', tag)
      : document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === null || v === undefined || v === false) continue;
    if (typeof v === 'function') e.addEventListener(k, v);
    else if (k === 'class') e.setAttribute('class', v);
    else if (k === 'width' && e instanceof HTMLElement && typeof v === 'string') e.style.width = v;
    else if (k === 'indent') e.style.paddingLeft = v;
    else if (k === 'value' && 'value' in e) e.value = v;
    else e.setAttribute(k, v === true ? '' : readable.includes(k) ? visible(String(v)) : v);
  }
  e.append(
    ...children
      .flat(9)
      .filter(c => c !== null && c !== undefined && c !== false)
      .map(c => (c instanceof Node ? c : visible(String(c)))),
  );
  return e;
}
h.svg = new Set(['g', 'title', 'rect', 'text', 'path', 'line', 'polyline', 'clipPath', 'tspan']);

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
// Figures have one format, that of the terminal and of the server's sentences, whatever the browser's locale is:
// 1,234 objects; 1.2 MiB; 5.9 s; 2.8 %.
const int = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const few = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

export const count = n => int.format(n);
// plural counts things: 1 object, 2 objects.
export const plural = (n, thing) => `${count(n)} ${thing}${n === 1 ? '' : 's'}`;
// mayFill says that figures may have fillers in them, as the commands do.
export const mayFill = x =>
  x.may_fill ? ' int[] and java.lang.Object are upper bounds: G1 of this JDK fills gaps with such objects.' : '';
// change gives a figure its sign, by the format of the figure.
export const change = (n, format) => (n > 0 ? '+' : n < 0 ? '−' : '') + format(Math.abs(n));
export function bytes(n) {
  if (n < 0) return '−' + bytes(-n);
  if (n < 1024) return int.format(n) + ' B';
  let i = 0;
  for (; n >= 1023.95 && i < units.length - 1; i++) n /= 1024; // 1,023.96 would be shown as 1,024.0
  return one.format(n) + ' ' + units[i];
}
// share writes a part of 1 in percent. Only 0 is 0 %, and only 1 is 100 %.
export function share(x) {
  const p = isFinite(x) ? 100 * x : 0;
  if (p === 0 || p === 100) return p + ' %';
  if (p > 0 && p < 0.05) return '< 0.1 %';
  if (p >= 99.95 && p < 100) return '> 99.9 %';
  return one.format(p) + ' %';
}
export const plain = x => few.format(x);
// span writes a duration, which is given in nanoseconds.
const spans = [
  [1e6, 1e3, 'µs'],
  [1e9, 1e6, 'ms'],
  [120e9, 1e9, 's'],
  [7200e9, 60e9, 'min'],
  [48 * 3600e9, 3600e9, 'h'],
  [Infinity, 86400e9, 'd'],
];
export function span(ns) {
  if (!ns) return '0 ms';
  const [, unit, name] = spans.find(([below]) => ns < below);
  return one.format(ns / unit) + ' ' + name;
}

const zone = () => (state().params.get('tz') === 'utc' ? 'UTC' : undefined);
// clock writes a time of day: 14:55:03, with a fraction 14:55:03.250.
export function clock(t, fraction = false) {
  return new Intl.DateTimeFormat('en-US', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: fraction ? 3 : undefined,
    timeZone: zone(),
    hourCycle: 'h23',
  }).format(new Date(t));
}
// date writes a day and a time: 2026-11-21 14:55:03. The Swedish locale is the one that writes ISO 8601.
export function date(t) {
  const f = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium', timeZone: zone() });
  return f.format(new Date(t)) + (zone() ? ' UTC' : '');
}
export const utc = t =>
  new Date(t)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
// when shows a time; its tooltip is the same in UTC.
export const when = t => h('time', { datetime: new Date(t).toISOString(), title: utc(t) }, date(t));

// unknown says why no heap state can be shown; null if the heap state after some collection is known.
export function unknown(r) {
  if (!r.collections.length)
    return 'There is no collection in this recording, so there is no heap state to show. Record for longer.';
  if (r.watched)
    return (
      `With ${r.collector} heapcam records only samples, so it does not know which objects live. The overview ` +
      `estimates the live bytes of allocation sites.`
    );
  return r.collections.some(c => c.known)
    ? null
    : 'The heap state is unknown after every collection of this recording, because data is missing.';
}

// The address after # holds the state of the page: VIEW?key=value&…
export function state() {
  const [view, rest] = location.hash.replace(/^#/, '').split(/\?(.*)/s);
  return { view: view || 'overview', params: new URLSearchParams(rest || '') };
}
const everywhere = ['tz', 'theme', 'at', 'from', 'to', 'by', 'filter', 'win']; // kept when the view changes
export function address(view, change = {}) {
  const s = state();
  const p = new URLSearchParams();
  for (const [k, v] of s.params) if (view === s.view || everywhere.includes(k)) p.set(k, v);
  for (const [k, v] of Object.entries(change)) v === null || v === '' || v === undefined ? p.delete(k) : p.set(k, v);
  const q = p.toString();
  return '#' + view + (q ? '?' + q : '');
}
// go changes the state. With replace the browser's Back button skips the change.
export function go(view, change, replace = true) {
  const to = address(view, change);
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

// Failure is an error that the server answered. column is the place of the error in the request's text, from 1.
export class Failure extends Error {
  constructor(body, status) {
    super(body.error || 'The viewer sent no error message.');
    Object.assign(this, body, { status });
  }
}
const running = new Map(); // the newest request of each kind, with which it can be aborted
export const asking = () => [...running.keys()].some(k => k !== 'overview');
// stop aborts the requests of a view. The server stops work that no request waits for.
export function stop() {
  for (const [k, c] of running) if (k !== 'overview') c.abort();
}
// get sends a request; it aborts an older request of the same kind. The window gets the event `asking` when a request
// begins or ends.
export async function get(path, params = {}, kind = null) {
  if (!kind) return ask(path, params);
  running.get(kind)?.abort();
  const c = new AbortController();
  running.set(kind, c);
  dispatchEvent(new Event('asking'));
  try {
    return await ask(path, params, c.signal);
  } finally {
    if (running.get(kind) === c) running.delete(kind);
    dispatchEvent(new Event('asking'));
  }
}
async function ask(path, params, signal) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== null && v !== undefined && v !== '') q.set(k, v);
  const r = await fetch('api/' + path + (q.size ? '?' + q : ''), { signal });
  const body = await r.json();
  if (!r.ok) throw new Failure(body, r.status);
  return body;
}
export async function post(path, body) {
  const r = await fetch('api/' + path, {
    method: 'POST',
    headers: { 'X-Heapcam': '1', 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const v = await r.json();
  if (!r.ok) throw new Failure(v, r.status);
  return v;
}

let noticeTimer;
export function notice(text) {
  document.getElementById('notice').textContent = visible(text);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    document.getElementById('notice').textContent = '';
  }, 6000);
}

// confirmed asks the reader in a dialog, and says whether the answer was yes.
export function confirmed(question, yes) {
  return new Promise(done => {
    const end = ok => () => {
      box.close();
      box.remove();
      done(ok);
    };
    const box = h(
      'dialog',
      { 'aria-labelledby': 'question', cancel: end(false) },
      h('p', { id: 'question' }, question),
      h(
        'p',
        { class: 'bar' },
        h('button', { type: 'button', class: 'yes', click: end(true) }, yes),
        h('button', { type: 'button', click: end(false), autofocus: true }, 'Cancel'),
      ),
    );
    document.body.append(box);
    box.showModal();
  });
}

// settle has the agent take a reference listing, after the reader has confirmed. most: how long it may stop the JVM.
export async function settle(most) {
  const ask =
    `Stop the JVM once, for at most ${most}, to list which objects are referenced? The page then shows who holds ` +
    'them, and the verdicts can tell a leak from garbage.';
  if (!(await confirmed(ask, 'Stop and list'))) return;
  notice('The JVM is asked for the listing …');
  try {
    notice((await post('settle', { confirmed: true })).text);
  } catch (e) {
    notice('Cannot take a reference listing: ' + e.message);
  }
}

// parts lets a long name break into lines only between its words: after a dot, a dollar sign or a bracket, and before a
// capital letter.
export const parts = name =>
  name.split(/(?<=[.$/(\[›])|(?<=[a-z])(?=[A-Z])/u).flatMap((w, i) => (i ? [h('wbr'), w] : [w]));

// save has the browser download a file.
export function save(name, blob) {
  const a = h('a', { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60000);
}

export const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// frame writes a stack frame as the report does.
export const frame = f =>
  f.class +
  '.' +
  f.method +
  (f.native ? '(native)' : f.line === null || f.line === undefined ? '' : `(${f.file || ''}:${f.line})`);
const pkg = f => (f.class.includes('.') ? f.class.slice(0, f.class.lastIndexOf('.')) : '(no package)');

// stack lists frames. Three or more neighbours of one package, except the first frame, are folded.
export function stack(frames) {
  if (!frames || !frames.length) return h('p', { class: 'quiet' }, 'The allocation site is unknown.');
  const out = [h('li', {}, frame(frames[0]))];
  for (let i = 1; i < frames.length;) {
    let j = i;
    while (j < frames.length && pkg(frames[j]) === pkg(frames[i])) j++;
    const run = frames.slice(i, j);
    if (run.length < 3) out.push(...run.map(f => h('li', {}, frame(f))));
    else
      out.push(
        h(
          'li',
          {},
          h(
            'details',
            {},
            h('summary', {}, `${run.length} frames in ${pkg(run[0])}`),
            h(
              'ul',
              { class: 'stack' },
              run.map(f => h('li', {}, frame(f))),
            ),
          ),
        ),
      );
    i = j;
  }
  return h('ul', { class: 'stack' }, out);
}

// facts lists pairs of a name and a value; a third text is the tooltip.
export const facts = list =>
  h(
    'dl',
    { class: 'facts' },
    list.filter(Boolean).map(([k, v, title]) => h('div', { title }, h('dt', {}, k), h('dd', {}, v))),
  );
// keys is the legend of a chart: pairs of a colour's class and a name; a third text is the tooltip. The class `line` or
// `dash` beside the colour shows a sample of a line.
export const keys = (...list) => list.map(([c, t, title]) => h('span', { class: 'key ' + c, title }, t));

let meanings = null; // of the words of the glossary
// term is a word that the glossary explains, in the row word: the meaning is shown on hover and, on a phone, by a tap.
export function term(text, word = text) {
  const e = h('abbr', { class: 'term', click: () => e.title && notice(e.title) }, text);
  meanings ??= fetch('glossary.json').then(
    async r => (r.ok ? new Map((await r.json()).terms.map(t => [t.term, t.meaning])) : new Map()),
    () => new Map(),
  );
  meanings.then(m => {
    if (m.has(word)) e.title = visible(m.get(word).replaceAll('`', ''));
  });
  return e;
}
// What term explains in sentences of the server, and the glossary's rows.
const explained = /\b(sync points?|live samples?)\b/;
const rowOf = word => (word.startsWith('sync') ? 'sync point' : 'sample, live sample');

// prose is a sentence of the server as the page shows it: commands in the font of commands, words of the glossary with
// their meanings, and numbers with separators, but for those that are part of a name or a line number. Four digits may
// be a year, unless they count something.
export const prose = text =>
  text
    .split(/`([^`]+)`/)
    .flatMap((t, i) => (i % 2 ? h('code', {}, t) : t.replace(large, d => count(BigInt(d))).split(explained)
      .map((w, k) => (k % 2 ? term(w, rowOf(w)) : w))));
const large = /(?<![\w.:$/#-])(?:\d{5,}(?![\w$:)-])|\d{4}(?= [a-z]+s\b))/g;

// short is a class name without its package.
export const short = name => name.replace(/^(?:[\w$]+\.)+(?=[\w$])/, '');

// win is the part of the window that the address names, as two times in seconds; null: all of it.
export function win(params = state().params) {
  const w = (params.get('win') || '').split('-').map(x => +x / 1000);
  return w.length === 2 && w[1] > w[0] ? w : null;
}

// within gives the collections of the part of the window that the address names; all of them if none is in it.
export function within(rows, params = state().params) {
  const w = win(params);
  const inside = w ? rows.filter(c => Date.parse(c.time) >= 1000 * w[0] && Date.parse(c.time) <= 1000 * w[1]) : rows;
  return inside.length ? inside : rows;
}
