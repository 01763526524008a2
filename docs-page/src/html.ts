/** HTML written as templates, in which everything is escaped that is not HTML itself. */
import { marked } from 'marked'

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Code that scrolls sideways within itself, with the keyboard too; `label` names it. */
export const codeBlock = (label: string, text = ''): Html =>
  html`<pre role="group" aria-label="${label}" tabindex="0">${text}</pre>`

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

/** A description, which OpenAPI writes in CommonMark: paragraphs, lists and the like. */
export const prose = (text: string | undefined): Html | undefined =>
  text === undefined ? undefined : new Html(marked.parse(text, { async: false }))

/** A description that stands within a line. */
export const phrase = (text: string | undefined): Html | undefined =>
  text === undefined ? undefined : new Html(marked.parseInline(text, { async: false }))
