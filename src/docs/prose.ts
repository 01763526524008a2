/** Descriptions, which OpenAPI writes in CommonMark. */
import { marked } from 'marked'
import { Html } from './html.ts'

/** Paragraphs, lists and the like. */
export const prose = (text: string | undefined): Html | undefined =>
  text === undefined ? undefined : new Html(marked.parse(text, { async: false }))

/** A description that stands within a line. */
export const phrase = (text: string | undefined): Html | undefined =>
  text === undefined ? undefined : new Html(marked.parseInline(text, { async: false }))
