/** HTML written as templates, in which everything is escaped that is not HTML itself. */
import { marked, type Token } from 'marked'

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | false | undefined | readonly (Html | undefined)[]

/** HTML of a template; `undefined` and `false` become nothing, and of an array each piece. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(String.raw({ raw: strings }, ...values.map(textOf)))

function textOf(value: Value): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
  return value.map(textOf).join('')
}

export const join = (parts: (Html | string)[], between: string): Html =>
  new Html(parts.map((part) => textOf(part)).join(between))

/** Code, which scrolls sideways, with the keyboard too. */
export const codeBlock = (title: string, text: string): Html => html`
  <div class="block">
    <div class="bar"><span>${title}</span></div>
    <pre translate="no" dir="ltr" role="group" aria-label="${title}" tabindex="0">${text}</pre>
  </div>`

/** A link to the place where it stands. */
export const anchor = (id: string): Html =>
  html` <a class="anchor" href="#${id}" aria-label="Link to ${id}">#</a>`

/** A description, which OpenAPI writes in CommonMark: paragraphs, lists and the like. */
export const prose = (text = ''): Html => new Html(marked.parse(text, { async: false }))

/** A description that stands within a line. */
export const phrase = (text = ''): Html => new Html(marked.parseInline(text, { async: false }))

/** A part of a description: its heading, and what stands under it. */
export interface Chapter {
  id: string
  heading: string
  words: Html
  code: Html[]
}

/** A description in its parts: what stands before the first heading, and the part of each heading. */
export function chaptersOf(text = ''): { introduction: Html; chapters: Chapter[] } {
  const parts: Token[][] = [[]]
  for (const token of marked.lexer(text)) {
    if (token.type === 'heading') parts.push([])
    parts.at(-1)?.push(token)
  }
  const [first = [], ...others] = parts
  return {
    introduction: new Html(marked.parser(first)),
    chapters: others.map(([title, ...tokens]) => {
      const heading = title && 'text' in title ? title.text : ''
      return {
        id: `guide-${heading.toLowerCase().replaceAll(/[^a-z\d]+/g, '-')}`,
        heading,
        words: new Html(marked.parser(tokens.filter(({ type }) => type !== 'code'))),
        code: tokens.flatMap((token) =>
          token.type === 'code' ? [codeBlock(token.lang || 'Code', token.text)] : [],
        ),
      }
    }),
  }
}
