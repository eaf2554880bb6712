// What all views use: elements, figures in the reader's locale, requests, and the page's address as its state.

// visible is text with what a reader would not see as \u escapes: control and format characters (bidi controls,
// zero-width ones), variation selectors, blank letters. Names come from a recording: none may reorder what stands
// beside it or pass for another. (Spaces stay: locales part figures by them.)
const hiding =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800]/gu;
export const visible = s =>
  s.replace(hiding, c => {
    const n = c.codePointAt(0),
      x = n.toString(16);
    return n < 0x80 ? '\\x' + x.padStart(2, '0') : n > 0xffff ? '\\U' + x.padStart(8, '0') : '\\u' + x.padStart(4, '0');
  });
const told = ['title', 'aria-label', 'placeholder'];
// Formats of some locales hold marks of direction, which are ours and are not needed: figures and dates stand in
// elements of their own.
const local = f => ({ format: x => f.format(x).replace(/[\u061c\u200e\u200f]/g, '') });

// h makes an element; children that are text are text, never markup, and visible. Attributes that are functions
// listen; null and false leave out.
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
    else e.setAttribute(k, v === true ? '' : told.includes(k) ? visible(String(v)) : v);
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
const int = local(new Intl.NumberFormat());
const one = local(new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, minimumFractionDigits: 1 }));
const few = local(new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 }));
const percent = local(new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 2 }));

export const count = n => int.format(n);
export const signed = n => (n > 0 ? '+' : n < 0 ? '−' : '') + int.format(Math.abs(n));
export function bytes(n) {
  if (n < 0) return '−' + bytes(-n);
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i ? one.format(n) : int.format(n)) + ' ' + units[i];
}
export const share = x => percent.format(isFinite(x) ? x : 0);
export const plain = x => few.format(x);
export const ms = ns => few.format(ns / 1e6) + ' ms';
export function span(ns) {
  const s = ns / 1e9;
  return s < 1
    ? ms(ns)
    : s < 120
      ? one.format(s) + ' s'
      : s < 7200
        ? one.format(s / 60) + ' min'
        : one.format(s / 3600) + ' h';
}

const zone = () => (state().params.get('tz') === 'utc' ? 'UTC' : undefined);
export function clock(t, fraction = false) {
  return local(
    new Intl.DateTimeFormat(undefined, {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: fraction ? 3 : undefined,
      timeZone: zone(),
      hourCycle: 'h23',
    }),
  ).format(new Date(t));
}
export function date(t) {
  return (
    local(new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone: zone() })).format(
      new Date(t),
    ) + (zone() ? ' UTC' : '')
  );
}
export const utc = t =>
  new Date(t)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
// when shows a time with UTC at hand.
export const when = t => h('time', { datetime: new Date(t).toISOString(), title: utc(t) }, date(t));

// The address behind # is the state of the page: VIEW?key=value&…
export function state() {
  const [view, rest] = location.hash.replace(/^#/, '').split(/\?(.*)/s);
  return { view: view || 'overview', params: new URLSearchParams(rest || '') };
}
const everywhere = ['tz', 'theme', 'at', 'from', 'to', 'by', 'filter']; // kept from view to view
export function address(view, change = {}) {
  const s = state();
  const p = new URLSearchParams();
  for (const [k, v] of s.params) if (view === s.view || everywhere.includes(k)) p.set(k, v);
  for (const [k, v] of Object.entries(change)) v === null || v === '' || v === undefined ? p.delete(k) : p.set(k, v);
  const q = p.toString();
  return '#' + view + (q ? '?' + q : '');
}
// go changes the state; replace leaves no step behind.
export function go(view, change, replace = true) {
  const to = address(view, change);
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

// Failure is an answer that is an error; column says where in what was asked, from 1.
export class Failure extends Error {
  constructor(body, status) {
    super(body.error || 'no answer');
    Object.assign(this, body, { status });
  }
}
const running = new Map(); // questions of a kind, to stop them by
export const asking = () => [...running.keys()].some(k => k !== 'overview');
// stop ends what a view has asked for; the server gives up what nobody waits for.
export function stop() {
  for (const [k, c] of running) if (k !== 'overview') c.abort();
}
// get asks; a newer question of one kind stops the older. The window hears of `asking` when questions begin or end.
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

// save has the browser keep a file.
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
// stack lists frames; runs of one package, but for the first frame, are folded.
export function stack(frames) {
  if (!frames || !frames.length) return h('p', { class: 'quiet' }, 'The site is not known.');
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
            h('summary', {}, `${run.length} frames of ${pkg(run[0])}`),
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

export const facts = list =>
  h(
    'dl',
    { class: 'facts' },
    list.filter(Boolean).map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v))),
  );
export const keys = (...list) => list.map(([c, t]) => h('span', { class: 'key ' + c }, t));
