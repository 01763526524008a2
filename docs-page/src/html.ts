/** HTML written as templates, in which everything is escaped that is not HTML itself. */
import { Marked, type Token } from 'marked'
import { slugOf, uniqueIds } from './ids.ts'

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | undefined | readonly (Html | undefined)[]

/** HTML of a template; `undefined` becomes nothing, and of an array each piece. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(String.raw({ raw: strings }, ...values.map(textOf)))

function textOf(value: Value): string {
  if (value === undefined) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
  return value.map(textOf).join('')
}

export const join = (parts: (Html | string)[], between: string): Html =>
  new Html(parts.map((part) => html`${part}`.text).join(between))

/** Code under a line that says what it is; its lines are wrapped. */
export const codeBlock = (title: string, text: string): Html =>
  block(title, html`aria-label="${title}"`, text)

/** Code whose lines are kept: it scrolls sideways, with the keyboard too. */
export const sampleBlock = (title: string, text: string): Html =>
  block(title, html`aria-label="Code sample" class="lines" tabindex="0"`, text)

const block = (title: string, attributes: Html, text: string) => html`
  <div class="block">
    <div class="bar"><span class="what">${title}</span></div>
    <pre role="group" ${attributes}>${text}</pre>
  </div>`

/** A link to the place where it stands. */
export const anchor = (id: string, what: string): Html =>
  html` <a class="anchor" href="#${id}" aria-label="Link to ${what}">#</a>`

/** What can be folded up, with a link to it, which must not stand in its summary. */
export const linked = (id: string, what: string, details: Html): Html =>
  html`<div class="linked">${anchor(id, what)}${details}</div>`

// The page loads nothing from elsewhere, so an image is a link to it.
const marked = new Marked({
  renderer: {
    image: ({ href, text }) => html`<a href="${href}">${text || href}</a>`.text,
  },
})

const linkless = new Marked({
  renderer: {
    image: ({ text }) => html`${text}`.text,
    link({ tokens }) {
      return this.parser.parseInline(tokens)
    },
  },
})

/** A description, which OpenAPI writes in CommonMark: paragraphs, lists and the like. */
export const prose = (text: string | undefined): Html | undefined =>
  text ? new Html(marked.parse(text, { async: false })) : undefined

/** A description that stands within a line. */
export const phrase = (text: string | undefined): Html | undefined =>
  text ? new Html(marked.parseInline(text, { async: false })) : undefined

/** The same for a place that must not have links, such as a `<summary>`. */
export const withoutLinks = (text: string | undefined): Html | undefined =>
  text ? new Html(linkless.parseInline(text, { async: false })) : undefined

/** A part of a description: its heading, and what stands under it. */
export interface Chapter {
  id: string
  heading: string
  words: Html
  code: Html[]
}

/** A description in its parts: what stands before the first heading, and the part of each heading. */
export function chaptersOf(text: string | undefined): { introduction: Html; chapters: Chapter[] } {
  const tokens: Token[] = marked.lexer(text ?? '')
  const isHeading = (token: Token | undefined) => token?.type === 'heading' && token.depth <= 2
  const starts = tokens.flatMap((token, index) => (isHeading(token) ? [index] : []))
  const parts = starts.map((start, index) => tokens.slice(start, starts[index + 1]))
  const render = (list: Token[]) => new Html(marked.parser(list))
  const idOf = uniqueIds()
  return {
    introduction: render(tokens.slice(0, starts[0])),
    chapters: parts.map(([first, ...rest]) => {
      const heading = first && 'text' in first ? first.text : ''
      return {
        id: idOf(`guide-${slugOf(heading)}`),
        heading,
        words: render(rest.filter(({ type }) => type !== 'code')),
        code: rest.flatMap((token) =>
          token.type === 'code' ? [sampleBlock(token.lang || 'Code', token.text)] : [],
        ),
      }
    }),
  }
}
