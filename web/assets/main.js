// The page: it shows the view that the address names, loads the overview that all views need, and listens to the
// server's events.
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
  plural,
  asking,
  stop,
  Failure,
  visible,
  confirmed,
  settle,
  clock,
  win,
} from './lib.js';
import * as overview from './overview.js';
import * as heap from './state.js';
import * as diff from './diff.js';
import * as trends from './trends.js';
import * as cost from './cost.js';
import * as whatif from './whatif.js';
import * as coverage from './coverage.js';
import * as leaks from './leaks.js';
import * as retained from './retained.js';
import * as glossary from './glossary.js';

const views = { overview, leaks, state: heap, retained, diff, trends, cost, whatif, coverage, glossary };
const names = {
  overview: 'Overview',
  leaks: 'Leaks',
  state: 'Heap',
  retained: 'Holders',
  diff: 'Diff',
  trends: 'Trends',
  cost: 'Threads, cost',
  whatif: 'Heap size',
  coverage: 'Site coverage',
  glossary: 'Glossary',
};
let data = null; // the answer of api/overview
let early = null; // the answer of api/early, until that of api/overview is there: views with `soon` show it
let likely = []; // verdicts that are not confirmed yet, until the answer of api/overview is there
let shown = null; // { view, leave }
const main = document.getElementById('main');

function chrome() {
  const s = state();
  const theme = s.params.get('theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = theme;
  // The links stay the same elements: one of them may have the focus.
  const nav = document.getElementById('nav');
  if (!nav.firstChild) {
    nav.append(...Object.keys(names).map(v => h('a', {}, names[v])));
    nav.addEventListener('scroll', edges);
    new ResizeObserver(() => reveal()).observe(nav);
  }
  Object.keys(names).forEach((v, i) => {
    const a = nav.children[i];
    a.href = address(v);
    if (v === s.view) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  });
  if (revealed !== s.view) reveal();
  revealed = s.view;
  brushed(s);
  const isUTC = s.params.get('tz') === 'utc';
  document.getElementById('tools').replaceChildren(
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(isUTC),
        title: 'Show all times in UTC',
        click: () => go(state().view, { tz: isUTC ? null : 'utc' }),
      },
      'UTC',
    ),
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(theme === 'dark'),
        title: 'Light text on a dark background',
        click: () => go(state().view, { theme: theme === 'dark' ? 'light' : 'dark' }),
      },
      'Dark',
    ),
    h('button', { type: 'button', id: 'copy', title: 'Copy the address of this view', click: copy }, 'Copy link'),
  );
}

let revealed = ''; // the view that the navigation has scrolled to

// reveal scrolls the navigation, on a phone, to the link of this view.
function reveal() {
  const nav = document.getElementById('nav'),
    a = nav.querySelector('[aria-current]');
  if (a) nav.scrollLeft = a.offsetLeft - nav.offsetLeft - (nav.clientWidth - a.offsetWidth) / 2;
  edges();
}

// edges hides the links that the edges of the navigation would cut, and marks the edges behind which there are more.
function edges() {
  const nav = document.getElementById('nav'),
    room = nav.getBoundingClientRect();
  let left = 0,
    right = 0;
  for (const a of nav.children) {
    const r = a.getBoundingClientRect();
    if (r.left < room.left - 1 && r.right > room.left) left = r.right - room.left;
    if (r.right > room.right + 1 && r.left < room.right) right = room.right - r.left;
  }
  nav.style.clipPath = left || right ? `inset(0 ${right}px 0 ${left}px)` : '';
  const { scrollLeft: at, clientWidth: wide, scrollWidth: all } = nav;
  nav.parentElement.classList.toggle('before', at > 1);
  nav.parentElement.classList.toggle('after', at + wide < all - 1);
}

// brushed says which part of the window all views show, and takes the choice back.
function brushed(s) {
  const e = document.getElementById('brush'),
    w = win(s.params);
  e.hidden = !w;
  if (!w) return;
  const t = x => clock(1000 * x, w[1] - w[0] < 60);
  e.replaceChildren(
    h('b', {}, `${t(w[0])} to ${t(w[1])}`),
    h('span', { class: 'quiet' },
      'Charts, Heap, Diff, Trends and Threads show this part of the time. Verdicts are about the whole recording.'),
    h('button', { type: 'button', id: 'all-time', click: () => go(state().view, { win: null }) }, 'Show all'),
  );
}

async function copy() {
  try {
    await navigator.clipboard.writeText(location.href);
    notice(
      'Link copied. It works while this viewer runs. In another viewer of this recording, add the part from # on to ' +
        'its address.',
    );
  } catch {
    notice('The browser did not allow the copy. Copy the link from the address bar.');
  }
}

// settled marks that the page shows what the address names. Tests wait for the mark.
function settled(at) {
  if (location.hash !== at) return;
  if (!asking()) main.dataset.shown = at;
  else addEventListener('asking', () => settled(at), { once: true }); // a request of the view before is being aborted
}

function leave() {
  if (shown && shown.view.leave) shown.view.leave();
  shown = null;
}

async function show() {
  chrome();
  const s = state();
  const view = views[s.view] || overview;
  document.title = `${names[s.view] || 'Overview'} – ${data ? visible(data.title) : 'heapcam'}`;
  const known = data || (view.soon ? early : null);
  if (!known) {
    leave();
    if (!document.getElementById('skeleton')) main.replaceChildren(overview.skeleton());
    return;
  }
  const at = location.hash;
  const done = () => known === data && settled(at);
  if (shown && shown.view === view && view.update) {
    await view.update(known, s.params);
    done();
    return;
  }
  stop();
  leave();
  const mine = (shown = { view });
  const part = h('div', {}); // a view that is ready too late fills an element that is no longer on the page
  main.replaceChildren(part);
  try {
    await view.show(part, known, s.params);
    done();
  } catch (e) {
    if (e.name !== 'AbortError' && shown === mine && known === data)
      main.replaceChildren(h('h2', {}, names[s.view]), h('p', { class: 'error', role: 'alert' }, e.message));
  }
}

// first shows what the collections took while the recording is read, or a heap state. An indexed recording answers
// sooner.
async function first() {
  let s = state();
  if (views[s.view] === heap) heap.ahead(s.params);
  await new Promise(done => setTimeout(done, 150));
  if (data) return;
  let answer;
  try {
    answer = await get('early');
  } catch {
    return; // load says what is wrong
  }
  if (data) return;
  early = answer;
  early?.headlines.push(...likely);
  s = state();
  if (early && document.getElementById('skeleton') && (views[s.view] || overview).soon) show();
}

async function load() {
  try {
    data = await get('overview', {}, 'overview');
  } catch (e) {
    if (e.name === 'AbortError') return;
    early = null;
    leave();
    main.replaceChildren(
      h('h2', {}, 'The recording cannot be shown'),
      h(
        'p',
        { class: 'error', role: 'alert' },
        e instanceof Failure
          ? e.message
          : 'The viewer does not answer. Start “heapcam view” again and open the address that it prints.',
      ),
    );
    return;
  }
  early = null;
  document.getElementById('title').textContent = visible(data.title);
  const home = document.getElementById('home');
  home.hidden = !data.home;
  if (data.home) home.href = data.home;
  document.getElementById('title').title = visible(data.title);
  live();
  const again = shown && shown.view;
  if (again && again.refresh) {
    const at = location.hash;
    await again.refresh(data, state().params);
    settled(at);
  } else {
    leave();
    await show();
  }
  renew();
}

let status = null;
function live() {
  const e = document.getElementById('live');
  e.hidden = !data || (!data.live && !status);
  if (e.hidden) return;
  const s = status,
    on = data.live && data.report.ending === 'none';
  const parts = [
    h('b', {}, on ? '● Live' : 'Ended'),
    s
      ? h(
          'span',
          {},
          `State: ${s.phase}. ${plural(s.collections, 'collection')}, ${bytes(s.live_bytes)} live, heapcam overhead ` +
            `${share(s.up_ns ? s.probe_ns / s.up_ns : 0)} of time, ${bytes(s.trace_bytes)} on disk.`,
        )
      : h('span', { class: 'quiet' },
          on ? 'This page is updated while the recording grows.' : `How it ended: ${data.report.end}.`),
    h('span', { class: 'grow' }),
    data.can_freeze
      ? h(
          'button',
          {
            type: 'button',
            id: 'freeze',
            title: 'Keep the current window as an incident (heapcam freeze)',
            click: freeze,
          },
          'Save incident',
        )
      : null,
    data.settle && on
      ? h(
          'button',
          {
            type: 'button',
            id: 'settle',
            title: 'Find out which objects live (heapcam leaks --settle)',
            click: () => settle(data.settle),
          },
          'Settle verdicts',
        )
      : null,
    data.can_pull
      ? h(
          'a',
          { href: 'api/pull', download: '', id: 'pull', title: 'Download the recording as one file (heapcam pull)' },
          'Download recording',
        )
      : null,
  ];
  e.replaceChildren(...parts.filter(Boolean));
}

async function freeze() {
  const ask = 'Keep the current window as an incident? It takes up to the size of the recording on this disk.';
  if (!(await confirmed(ask, 'Save incident'))) return;
  try {
    const i = await post('freeze', { reason: 'from the viewer', confirmed: true });
    notice(
      `Saved incident ${i.id}: collections ${count(i.first_gc)} to ${count(i.last_gc)}, ${bytes(i.bytes)}.`,
    );
    data.incidents.push(i);
    if (shown && shown.view.refresh) shown.view.refresh(data, state().params);
  } catch (e) {
    notice('Cannot save the incident: ' + e.message);
  }
}

let reload = 0, // the timer of the next reload
  newest = null; // the server's last event of the recording
// renew loads the overview again if the recording has grown. Between two loads it waits four times as long as a load
// takes, because a long window takes a while to read.
function renew() {
  if (!data || !newest || reload || (newest.version === data.version && newest.live === data.live)) return;
  reload = setTimeout(async () => {
    const t = performance.now();
    try {
      await load();
    } finally {
      const duration = performance.now() - t;
      reload = setTimeout(() => {
        reload = 0;
        renew();
      }, 4 * duration);
    }
  }, 300);
}

function listen() {
  const events = new EventSource('api/events');
  const bar = document.getElementById('progress');
  const what = h('span', {}),
    gauge = h('progress', {}),
    amount = h('span', { class: 'quiet' }),
    end = h(
      'button',
      {
        type: 'button',
        id: 'stop',
        click: () => {
          stop();
          notice('Stopped. To start again, repeat your last choice.');
        },
      },
      'Stop',
    );
  bar.replaceChildren(what, gauge, amount, end);
  let progress = null, // the server's last report of its progress; null: it does nothing
    later = 0; // the timer that shows the bar: work of less than a quarter of a second needs none
  const strip = () => {
    const busy = progress || asking();
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
    what.textContent = progress ? progress.what : 'Waiting for the viewer';
    gauge.setAttribute('aria-label', what.textContent);
    if (progress) {
      gauge.max = progress.total;
      gauge.value = progress.done;
    } else gauge.removeAttribute('value');
    amount.textContent = !progress
      ? ''
      : progress.unit
        ? `${count(progress.done)} of ${count(progress.total)} ${progress.unit}`
        : `${bytes(progress.done)} of ${bytes(progress.total)}`;
    end.hidden = !asking();
  };
  addEventListener('asking', strip);
  events.addEventListener('progress', m => {
    const p = JSON.parse(m.data);
    progress = p.done < p.total ? p : null;
    strip();
  });
  events.addEventListener('likely', m => {
    if (data) return;
    likely = JSON.parse(m.data);
    if (!early) return;
    early.headlines = early.headlines.filter(x => x.kind !== 'likely').concat(likely);
    overview.say(early.headlines);
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

// On a phone a row of a table is shown as lines: each cell gets the name of its column.
new MutationObserver(changes => {
  for (const c of changes)
    for (const n of c.addedNodes)
      for (const tr of n.nodeType !== 1 ? [] : n.tagName === 'TR' ? [n] : n.querySelectorAll('tbody tr')) {
        const heads = tr.closest('table')?.tHead?.rows[0]?.cells;
        if (!heads || tr.parentNode.tagName !== 'TBODY' || tr.cells.length !== heads.length) continue;
        for (let i = 0; i < heads.length; i++) tr.cells[i].dataset.label = heads[i].textContent;
      }
}).observe(main, { childList: true, subtree: true });

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
  const i = '123456789'.indexOf(e.key);
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
show();
listen();
load();
first();
