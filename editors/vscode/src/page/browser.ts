// The script of the page: shows what it is sent, keeping the place, and passes clicks on.
declare function acquireVsCodeApi(): { postMessage(message: unknown): void; setState(state: unknown): void };

const api = acquireVsCodeApi();
const root = document.getElementById('root')!;

window.addEventListener('message', ({ data }: MessageEvent<{ html: string; plan: string; reveal?: string }>) => {
  const focused = document.activeElement?.id;
  const opened = [...document.querySelectorAll('details[open]')].map((one) => one.id);
  const left = document.querySelector('.picture')?.scrollLeft ?? 0;
  const top = document.querySelector('.picture')?.scrollTop ?? 0;
  root.innerHTML = data.html;
  for (const id of opened) document.getElementById(id)?.setAttribute('open', '');
  document.querySelector('.picture')?.scrollTo(left, top);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (data.reveal) document.getElementById(`node-${data.reveal}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  api.setState({ plan: data.plan });
});

function act(target: EventTarget | null): boolean {
  const element = target instanceof Element ? target.closest<HTMLElement | SVGElement>('[data-act]') : null;
  if (!element) return false;
  api.postMessage({ ...element.dataset });
  return true;
}

root.addEventListener('click', ({ target }) => void act(target));
root.addEventListener('keydown', (event) => {
  const node = event.target instanceof SVGElement ? event.target : undefined;
  if (!node) return;
  if (event.key === 'Enter' || event.key === ' ') {
    if (act(node)) event.preventDefault();
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    const all = [...document.querySelectorAll<SVGElement>('.node')];
    all[all.indexOf(node) + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
    event.preventDefault();
  }
});
/** How wide the picture can be: all of the page, or what is left beside the details. */
const room = () => (innerWidth > 900 ? Math.min(1180, innerWidth - 40) - 430 : innerWidth - 52);
let told = room();
let resizing: ReturnType<typeof setTimeout> | undefined;
addEventListener('resize', () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (told !== room()) api.postMessage({ act: 'ready', room: (told = room()) });
  }, 150);
});
api.postMessage({ act: 'ready', room: told });
