// The page: which view is shown, the recording's overview that all views need, and what the server tells by itself.
import {
  h,
  get,
  post,
  state,
  address,
  go,
  notice,
  bytes,
  count,
  share,
  asking,
  stop,
  Failure,
  visible,
} from './lib.js';
import * as overview from './overview.js';
import * as heap from './state.js';
import * as diff from './diff.js';
import * as trends from './trends.js';
import * as coverage from './coverage.js';
import * as leaks from './leaks.js';

const views = { overview, state: heap, diff, trends, leaks, coverage };
const names = {
  overview: 'Overview',
  state: 'State',
  diff: 'Diff',
  trends: 'Trends',
  leaks: 'Leaks',
  coverage: 'Coverage',
};
let data = null; // of api/overview
let shown = null; // { view, leave }
const main = document.getElementById('main');

function chrome() {
  const s = state();
  const theme = s.params.get('theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = theme;
  document.getElementById('nav').replaceChildren(
    ...Object.keys(names)
      .filter(v => views[v])
      .map(v => h('a', { href: address(v), 'aria-current': v === s.view ? 'page' : null }, names[v])),
  );
  const isUTC = s.params.get('tz') === 'utc';
  document.getElementById('tools').replaceChildren(
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(isUTC),
        title: 'Times in UTC',
        click: () => go(state().view, { tz: isUTC ? null : 'utc' }),
      },
      'UTC',
    ),
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(theme === 'dark'),
        click: () => go(state().view, { theme: theme === 'dark' ? 'light' : 'dark' }),
      },
      'Dark',
    ),
    h('button', { type: 'button', id: 'copy', click: copy }, 'Copy link'),
  );
}

async function copy() {
  try {
    await navigator.clipboard.writeText(location.href);
    notice(
      'The address of this view is copied. It shows the same to whoever can reach this viewer; behind another ' +
        'viewer of the same recording the part from # on does.',
    );
  } catch {
    notice('The browser does not let a page copy: take the address from its bar.');
  }
}

// settled says that what the address asked for is on the page: for who waits.
function settled(at) {
  if (location.hash === at && !asking()) main.dataset.shown = at;
}

async function show() {
  chrome();
  const s = state();
  const view = views[s.view] || overview;
  document.title = `${names[s.view] || 'Overview'} – ${data ? visible(data.title) : 'heapcam'}`;
  if (!data) return;
  const at = location.hash;
  const done = () => settled(at);
  if (shown && shown.view === view && view.update) {
    await view.update(data, s.params);
    done();
    return;
  }
  stop();
  if (shown && shown.view.leave) shown.view.leave();
  const mine = (shown = { view });
  const part = h('div', {}); // one that comes late is shown nowhere
  main.replaceChildren(part);
  try {
    await view.show(part, data, s.params);
    done();
  } catch (e) {
    if (e.name !== 'AbortError' && shown === mine)
      main.replaceChildren(h('h2', {}, names[s.view]), h('p', { class: 'error', role: 'alert' }, e.message));
  }
}

async function load() {
  try {
    data = await get('overview', {}, 'overview');
  } catch (e) {
    if (e.name === 'AbortError') return;
    main.replaceChildren(
      h('h2', {}, 'The recording can not be shown'),
      h(
        'p',
        { class: 'error', role: 'alert' },
        e instanceof Failure ? e.message : 'The viewer does not answer: it has ended.',
      ),
    );
    return;
  }
  document.getElementById('title').textContent = visible(data.title);
  document.getElementById('title').title = visible(data.title);
  live();
  const again = shown && shown.view;
  if (again && again.refresh) {
    const at = location.hash;
    await again.refresh(data, state().params);
    settled(at);
  } else {
    if (shown && shown.view.leave) shown.view.leave();
    shown = null;
    await show();
  }
  renew();
}

let status = null;
function live() {
  const e = document.getElementById('live');
  e.hidden = !data || (!data.live && !status);
  if (e.hidden) return;
  const s = status;
  e.replaceChildren(
    h('b', {}, data.live ? '● Live' : 'Ended'),
    s
      ? h(
          'span',
          {},
          `${s.phase}, ${count(s.collections)} collections, ${bytes(s.live_bytes)} live, heapcam's share ` +
            `${share(s.up_ns ? s.probe_ns / s.up_ns : 0)}, ${bytes(s.trace_bytes)} on disk`,
        )
      : h('span', { class: 'quiet' }, 'the page follows the recording'),
    h('span', { class: 'grow' }),
    data.can_freeze ? h('button', { type: 'button', id: 'freeze', click: freeze }, 'Freeze') : null,
    data.can_pull ? h('a', { href: 'api/pull', download: '', id: 'pull' }, 'Pull') : null,
  );
}

async function freeze() {
  try {
    const i = await post('freeze', { reason: 'from the viewer' });
    notice(`Kept ${bytes(i.bytes)} as incident ${i.id}, collections ${i.first_gc} to ${i.last_gc}.`);
    data.incidents.push(i);
    if (shown && shown.view.refresh) shown.view.refresh(data, state().params);
  } catch (e) {
    notice('Not frozen: ' + e.message);
  }
}

let reload = 0,
  newest = null; // what the server said last of the recording
// renew has the overview read anew if the recording has grown since, not more often than it pays: reading takes a
// while on a long window.
function renew() {
  if (!data || !newest || reload || (newest.version === data.version && newest.live === data.live)) return;
  reload = setTimeout(async () => {
    const t = performance.now();
    try {
      await load();
    } finally {
      const took = performance.now() - t;
      reload = setTimeout(() => {
        reload = 0;
        renew();
      }, 4 * took);
    }
  }, 300);
}

function listen() {
  const events = new EventSource('api/events');
  const bar = document.getElementById('progress');
  const what = h('span', {}),
    gauge = h('progress', {}),
    far = h('span', { class: 'quiet' }),
    end = h(
      'button',
      {
        type: 'button',
        id: 'stop',
        click: () => {
          stop();
          notice('Stopped. What was asked for is not shown; choose it again to have it made.');
        },
      },
      'Stop',
    );
  bar.replaceChildren(what, gauge, far, end);
  let told = null,
    later = 0; // what the server says it is doing
  // What takes less than a quarter of a second needs no bar.
  const strip = () => {
    const busy = told || asking();
    if (!busy) {
      clearTimeout(later);
      later = 0;
      bar.hidden = true;
      return;
    }
    if (!later)
      later = setTimeout(() => {
        bar.hidden = false;
      }, 250);
    what.textContent = told ? told.what : 'working on it';
    gauge.setAttribute('aria-label', what.textContent);
    if (told) {
      gauge.max = told.total;
      gauge.value = told.done;
    } else gauge.removeAttribute('value');
    far.textContent = !told
      ? ''
      : told.unit
        ? `${count(told.done)} of ${count(told.total)} ${told.unit}`
        : `${bytes(told.done)} of ${bytes(told.total)}`;
    end.hidden = !asking();
  };
  addEventListener('asking', strip);
  events.addEventListener('progress', m => {
    const p = JSON.parse(m.data);
    told = p.done < p.total ? p : null;
    strip();
  });
  events.addEventListener('status', m => {
    status = JSON.parse(m.data);
    live();
  });
  events.addEventListener('changed', m => {
    newest = JSON.parse(m.data);
    renew();
  });
}

addEventListener('hashchange', show);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  shown = null;
  show();
});
document.getElementById('skip').addEventListener('click', e => {
  e.preventDefault();
  main.focus();
});
document.addEventListener('keydown', e => {
  if (e.altKey || e.ctrlKey || e.metaKey || /INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) return;
  const i = '123456'.indexOf(e.key);
  const v = Object.keys(names).filter(v => views[v])[i];
  if (i >= 0 && v) {
    go(v, {}, false);
    e.preventDefault();
  }
  if (e.key === '/') {
    const q = document.querySelector('input[type=search]');
    if (q) {
      q.focus();
      e.preventDefault();
    }
  }
});
chrome();
listen();
load();
