// The first page of a viewer without an argument: all recordings, a page of rows at a time.
import { h, get, go, state, bytes, count, plural, when } from './lib.js';

const main = document.getElementById('main');
const words = { leak: 'Leak', suspect: 'Possible leak', storm: 'Frequent GC', growth: 'Growth', gap: 'Missing data',
  damage: 'Damage', quiet: 'No leak found', unknown: 'Cannot tell', empty: 'No data' };
const sorts = { now: 'recorded now first', since: 'newest first', name: 'name', service: 'service', size: 'size' };

let box,
  list = null, // the answer of api/recordings
  shown = '';
const abouts = new Map(), // what was read of a recording, by id
  verdicts = new Map();

const question = () => {
  const p = state().params;
  return { find: p.get('find') || '', sort: p.get('sort') || '', skip: p.get('skip') || '' };
};

function theme() {
  const dark = state().params.get('theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = dark;
  document.getElementById('tools').replaceChildren(
    h(
      'button',
      { type: 'button', 'aria-pressed': String(dark === 'dark'), title: 'Light text on a dark background',
        click: () => go('list', { theme: dark === 'dark' ? 'light' : 'dark' }) },
      'Dark',
    ),
  );
}

function make() {
  let later = 0;
  const search = h('input', {
    id: 'find',
    type: 'search',
    class: 'grow',
    value: question().find,
    placeholder: 'name, service, user, pod, folder …',
    input: e => {
      clearTimeout(later);
      later = setTimeout(() => go('list', { find: e.target.value || null, skip: null }), 150);
    },
  });
  box = {
    search,
    head: h('p', { id: 'head', 'aria-live': 'polite' }),
    problem: h('p', { class: 'quiet', id: 'problem' }),
    pages: h('p', { class: 'bar', id: 'pages' }),
    rows: h('tbody', {}),
    sort: h(
      'select',
      { id: 'sort', change: e => go('list', { sort: e.target.value === 'now' ? null : e.target.value, skip: null }) },
      Object.entries(sorts).map(([k, t]) => h('option', { value: k, selected: (question().sort || 'now') === k }, t)),
    ),
  };
  const heads = [['Recording'], ['Verdict'], ['State'], ['Service'], ['User, unit, pod'], ['JDK'], ['Maximum heap', 1],
    ['Since'], ['Collections', 1], ['On disk', 1]];
  main.replaceChildren(
    h('h2', {}, 'Recordings'),
    box.head,
    h('div', { class: 'bar' }, h('label', { for: 'find' }, 'Search'), search,
      h('span', { class: 'whole' }, h('label', { for: 'sort' }, 'Sort by '), box.sort)),
    box.pages,
    h(
      'table',
      { id: 'recordings' },
      h('thead', {}, h('tr', {}, heads.map(([t, n]) => h('th', { scope: 'col', class: n ? 'n' : null }, t)))),
      box.rows,
    ),
    box.problem,
  );
  box.heads = heads.map(([t]) => t);
}

async function load() {
  const q = question();
  theme();
  if (document.activeElement !== box.search && box.search.value !== q.find) box.search.value = q.find;
  try {
    list = await get('recordings', q, 'recordings');
  } catch (e) {
    if (e.name !== 'AbortError') box.problem.textContent = e.message || 'The viewer does not answer.';
    return;
  }
  const key = JSON.stringify([list, document.documentElement.dataset.theme]);
  if (key !== shown) {
    shown = key;
    draw(q);
  }
  main.dataset.shown = location.hash;
  read();
}

function draw(q) {
  const l = list;
  box.head.replaceChildren(
    `${plural(l.all, 'recording')}, ${count(l.live)} of them recorded now.` +
      (q.find ? ` ${count(l.found)} ${l.found === 1 ? 'matches' : 'match'} the search.` : ''),
  );
  box.problem.textContent = (l.problem ? l.problem + ' ' : '') + `Folders: ${l.where}.`;
  const step = (t, skip, on) =>
    h('button', { type: 'button', disabled: !on, click: () => go('list', { skip: skip || null }, false) }, t);
  box.pages.hidden = l.found <= l.page;
  box.pages.replaceChildren(
    step('Previous', l.skip - l.page, l.skip > 0),
    step('Next', l.skip + l.page, l.skip + l.page < l.found),
    `${count(l.skip + 1)} to ${count(Math.min(l.skip + l.page, l.found))} of ${count(l.found)}`,
  );
  const focus = document.activeElement?.dataset?.id;
  box.rows.replaceChildren(
    ...(l.rows.length
      ? l.rows.map(row)
      : [h('tr', {}, h('td', { colspan: box.heads.length, class: 'quiet' }, l.all ? 'No recording matches.'
          : 'There is no recording yet. The commands “heapcam run” and “heapcam record” make one.'))]),
  );
  if (focus) box.rows.querySelector(`a[data-id="${CSS.escape(focus)}"]`)?.focus();
}

// jdk is the version of a VM: the last word of its name.
const jdk = vm => vm.split(' ').at(-1);

function row(e) {
  const a = abouts.get(e.id),
    vm = e.vm || a?.vm || '';
  const cells = [
    [h('a', { href: `r/${e.id}/`, 'data-id': e.id, title: e.dir }, e.name), e.pid ? ` pid ${e.pid}` : ''],
    [verdict(e)],
    [e.live ? h('b', { class: 'whole' }, '● ' + e.state) : e.state],
    [[e.service, e.service_version].filter(Boolean).join(' ') || '–'],
    [[e.user, e.where].filter(Boolean).join(', ') || '–'],
    [h('span', { title: vm }, vm ? jdk(vm) : '–', a?.collector ? ', ' + a.collector : '')],
    [a?.max_heap_bytes ? bytes(a.max_heap_bytes) : '–'],
    [when(e.since)],
    [e.kind === 'file' ? '–' : count(e.collections)],
    [bytes(e.bytes)],
  ];
  return h(
    'tr',
    { 'data-row': e.id },
    cells.map((c, i) =>
      h('td', { class: [6, 8, 9].includes(i) ? 'n' : i < 1 ? 'name' : null, 'data-label': box.heads[i] }, c)),
  );
}

function verdict(e) {
  const v = verdicts.get(e.id);
  if (!v) return h('span', { class: 'quiet' }, 'reading …');
  if (v.error) return h('span', { class: 'quiet', title: v.error }, 'cannot be read');
  return h('span', { class: 'tag ' + v.kind, title: v.text }, words[v.kind] || v.kind);
}

let reads = 0; // counts the calls of read: only the newest one goes on
// read asks for what has to be read of the rows that are shown: first what their JVMs are, then the verdicts.
async function read() {
  const mine = ++reads,
    rows = list.rows;
  const redo = e => {
    const old = box.rows.querySelector(`tr[data-row="${e.id}"]`);
    if (!old || old.contains(document.activeElement)) {
      if (old) old.cells[1].replaceChildren(verdict(e));
      return;
    }
    old.replaceWith(row(e));
  };
  const each = async (map, path, fresh) => {
    for (const e of rows) {
      if (mine !== reads) return;
      const had = map.get(e.id);
      if (had && fresh(had)) continue;
      let v;
      try {
        v = await get(path, { id: e.id });
      } catch (err) {
        v = { error: err.message };
      }
      v.at = Date.now();
      map.set(e.id, v);
      if (mine === reads) redo(e);
    }
  };
  await each(abouts, 'about', () => true);
  await each(verdicts, 'verdict', v => Date.now() - v.at < 60000);
}

make();
addEventListener('hashchange', load);
document.getElementById('skip').addEventListener('click', e => {
  e.preventDefault();
  main.focus();
});
document.addEventListener('keydown', e => {
  if (e.key === '/' && !/INPUT|SELECT/.test(e.target.tagName)) {
    box.search.focus();
    e.preventDefault();
  }
});
load();
setInterval(() => {
  if (document.visibilityState === 'visible') load();
}, 5000);
