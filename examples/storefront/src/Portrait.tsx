/** A drawing instead of a photograph: the species of an animal in one of several coats. */
import pictures from './animals.svg?no-inline'
import type { Species } from './shop.ts'

declare module 'react' {
  interface CSSProperties {
    '--coat'?: string | undefined
    '--shade'?: string | undefined
    '--light'?: string | undefined
    '--trim'?: string | undefined
  }
}

/** The colors of a coat, of its darker parts, and of its lighter parts. */
const coats: Readonly<Record<Species, readonly (readonly [string, string, string])[]>> = {
  dog: [
    ['#e0a458', '#b8763a', '#fff1dc'],
    ['#a9744f', '#7d5238', '#f6e3cf'],
    ['#f3ebdf', '#c9a27c', '#ffffff'],
    ['#8d8791', '#67616d', '#f1eeee'],
  ],
  cat: [
    ['#f0a35e', '#cf7a35', '#fff3e2'],
    ['#9a9cab', '#6f7184', '#f3f3f6'],
    ['#f4efe8', '#cbbba8', '#ffffff'],
    ['#6f6673', '#4f4854', '#efe9ee'],
  ],
  bird: [
    ['#58b368', '#388f58', '#fbe58a'],
    ['#4f9fe0', '#2f76bd', '#f4f7fb'],
    ['#f4c53d', '#dd9a20', '#fff6d2'],
    ['#f08a7b', '#cf5f58', '#ffeadf'],
  ],
  hamster: [
    ['#dba365', '#b37a40', '#fff5e6'],
    ['#b9a99a', '#8d7c6f', '#faf5ef'],
    ['#f6e7d2', '#dcb98d', '#ffffff'],
    ['#a27a5d', '#7b5942', '#f7e8da'],
  ],
  fish: [
    ['#f58a3c', '#d9652a', '#fff3e4'],
    ['#4a8fe7', '#f2c14e', '#bfe0ff'],
    ['#f2c230', '#e08a2e', '#fff6cf'],
    ['#e4667f', '#b8446b', '#ffdfe3'],
  ],
  paw: [['#b58e68', '#b58e68', '#b58e68']],
}

/** Accent colors, which no coat has. */
const trims = ['#d9503f', '#3f7fc4', '#3f9c6c', '#8a5cc2', '#e0a11e']

/** Equal names have equal pictures; different names of a species rarely do. */
export function Portrait({ species, name = '' }: { species: Species; name?: string }) {
  const number = hash(name)
  const choice = coats[species]
  const [coat, shade, light] = choice[number % choice.length] ?? []
  const trim = trims[number % trims.length]
  return (
    <svg
      className={`portrait ${species}`}
      style={{ '--coat': coat, '--shade': shade, '--light': light, '--trim': trim }}
      viewBox="0 0 120 90"
      aria-hidden="true"
    >
      <use
        href={`${pictures}#${species}`}
        transform={number % 3 === 0 ? 'matrix(-1 0 0 1 120 0)' : undefined}
      />
    </svg>
  )
}

/** A hash that differs for similar names. */
const hash = (name: string) =>
  [...name].reduce((sum, letter) => (sum * 33 + (letter.codePointAt(0) ?? 0)) % 7919, 0)
