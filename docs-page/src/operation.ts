/** One operation: what it takes, a sample of its request and its answers, and a form that tries it. */
import {
  examplesOf,
  exampleText,
  inline,
  nameOf,
  type OpenApi,
  type Operation,
  type Parameter,
  type Response,
  schemaOf,
  schemaOfParameter,
} from './document.ts'
import {
  codeBlock,
  type Html,
  html,
  linked,
  phrase,
  prose,
  sampleBlock,
  withoutLinks,
} from './html.ts'
import { bodyOf, curlOf, exampleOfParameter, keyOf } from './sample.ts'
import { fields, tree } from './schema.ts'

/** An operation, folded up unless it is open from the start; `docs.js` makes its form work. */
export function operationEntry(document: OpenApi, operation: Operation, isOpen: boolean): Html {
  const { id, method, path, object, parameters } = operation
  const { summary, description, deprecated } = object
  const address = html`<code class="path">${breakable(path)}</code>`
  return linked(
    id,
    id,
    html`
    <details class="entry operation" data-entry="operation" id="${id}"${isOpen ? html` open` : undefined}>
      <summary>
        <h3>
          <span class="title">${summary || path}</span>
          <span class="address">
            <span class="method ${method.toLowerCase()}">${method}</span>
            ${deprecated ? html`<s>${address}</s> <span class="deprecated">deprecated</span>` : address}
          </span>
          <code class="id">${id}</code>
        </h3>
      </summary>
      <div class="inside">
        <div class="words">
          <a class="to-form" href="#${id}-form" hidden>Try it out</a>
          ${prose(description)}
          ${parameters.length > 0 || operation.body ? undefined : html`<p class="hint">It takes no parameters and no body.</p>`}
          ${parameters.length > 0 ? html`<h4>Parameters</h4>${fields(document, parameters)}` : undefined}
          ${requestBody(document, operation)}
        </div>
        <div class="code"><div class="stays">
          ${samples(document, operation)}
          ${answers(document, operation)}
        </div></div>
        ${trial(document, operation)}
        ${
          operation.responses.length > 0
            ? html`<div class="responses">
          <h4>Responses</h4>
          ${operation.responses.map(([status, each]) => response(document, id, status, each))}
        </div>`
            : undefined
        }
      </div>
    </details>`,
  )
}

/** A path that may be broken after each of its slashes. */
const breakable = (path: string): Html =>
  html`${path.split(/(?<=\/)/).map((part) => html`${part}<wbr>`)}`

function requestBody(document: OpenApi, { body }: Operation): Html[] {
  return Object.entries(body?.content ?? {}).map(
    ([type, { schema }]) => html`
      <h4>Request body <small>${type}${body?.required ? ' · required' : ''}</small></h4>
      ${prose(body?.description)}
      ${tree(document, schema)}`,
  )
}

/** The request as code: as a command here, in other languages by `docs.js`, or from the document. */
function samples(document: OpenApi, operation: Operation): Html {
  const { method, path, object } = operation
  const others = (object['x-codeSamples'] ?? []).map(
    ({ lang, label = lang, source }) =>
      html`<template data-language="${label}">${source}</template>`,
  )
  return html`<div class="samples">
            ${sampleBlock(`${method} ${path}`, curlOf(document, operation))}
            ${others}
          </div>`
}

/** How many statuses docs.css can tell apart. */
const MAX_TABS = 24

/** An example of each answer, behind a tab of its status: radio buttons, which need no script. */
function answers(document: OpenApi, { id, responses }: Operation): Html | undefined {
  const shown = responses.slice(0, MAX_TABS)
  if (shown.length === 0) return undefined
  const tabs = shown.map(
    ([status], index) => html`
              <label class="s${status.slice(0, 1)}"><input type="radio" name="${id}-answer" value="${status}"${
                index === 0 ? html` checked` : undefined
              }>${status}</label>`,
  )
  const panels = shown.map(([status, { content, description = '' }]) => {
    const examples = examplesOf(document, content)
    const blocks = examples.map((value) =>
      codeBlock([status, codeOf(value)].filter(Boolean).join(' '), exampleText(value)),
    )
    return html`<div class="panel"><p class="hint">${phrase(description)}</p>${
      blocks.length > 0 ? blocks : html`<p class="hint">The answer has no body.</p>`
    }</div>`
  })
  return html`<div class="examples">
            <fieldset class="tabs"><legend>Example answer</legend>${tabs}</fieldset>
            ${panels}
          </div>`
}

/** What an example of an error calls it, where it has such a field. */
function codeOf(value: unknown): string | undefined {
  const { code } = Object(value) as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}

/** A response. What success brings is open to view; of an error the line says most. */
function response(document: OpenApi, id: string, status: string, object: Response): Html {
  const { description, headers = {}, content = {} } = object
  const isError = status >= '4'
  const codes = isError ? examplesOf(document, content).map(codeOf) : []
  const here = `${id}-${status}`
  const names = Object.entries(headers).map(([name, { $ref = '' }]) =>
    $ref.startsWith('#/components/headers/')
      ? html`<a href="#header-${nameOf($ref)}"><code>${name}</code></a> `
      : html`<code>${name}</code> `,
  )
  return linked(
    here,
    `${status} of ${id}`,
    html`
          <details class="response" id="${here}" data-status="${status}"${isError ? undefined : html` open`}>
            <summary>
              <code class="status s${status.slice(0, 1)}">${status}</code>
              <span>
                ${codes.map((code) => code && html`<code>${code}</code> `).map((code) => code || undefined)}
                <span class="description">${withoutLinks(description)}</span>
              </span>
            </summary>
            ${Object.entries(content).map(
              ([type, { schema }]) =>
                html`<div class="body"><p class="hint">${type}</p>${tree(document, schema)}</div>`,
            )}
            ${names.length > 0 ? html`<p class="names">Headers: ${names}</p>` : undefined}
          </details>`,
  )
}

/** The form. Its samples and answers are made by `docs.js`, which is why it is hidden without. */
function trial(document: OpenApi, operation: Operation): Html {
  const { id, method, path, parameters, key } = operation
  const body = bodyOf(document, operation)
  const place = key && keyOf(key)
  const secret =
    place &&
    html` data-key-in="${place.in}" data-key-name="${place.name}" data-key-prefix="${place.prefix}"`
  return html`
        <form class="trial" id="${id}-form" aria-label="Try ${id}" data-method="${method}" data-path="${path}"${secret} hidden>
          <h4>Try it out</h4>
          <div class="inputs">${parameters.map((parameter) => input(document, `${id}-${parameter.in}-${parameter.name}`, parameter))}</div>
          ${
            body &&
            html`
          <label for="${id}-body">Body</label>
          <textarea id="${id}-body" data-in="body" data-type="${body.type}" rows="6" ${plain}>${body.text}</textarea>`
          }
          <p class="hint">
            Sends to <code class="target"></code>${
              method === 'GET' ? undefined : html`: <strong>this changes real data</strong>`
            }
          </p>
          ${key && html`<p class="hint keyed"></p>`}
          <button type="submit">Send</button>
          <div class="answer" role="group" aria-label="Answer">
            <p role="status"></p>
            <div class="result" hidden>
              <button type="button" class="next">Next page</button>
              ${codeBlock('Content', '')}
              <details><summary>Response headers</summary>${codeBlock('Response headers', '')}</details>
            </div>
          </div>
        </form>`
}

/** What is typed is taken as it is. */
const plain = html`autocomplete="off" autocapitalize="off" spellcheck="false"`

function input(document: OpenApi, id: string, parameter: Parameter): Html {
  const { in: place, name, required = false } = parameter
  const schema = schemaOf(document, schemaOfParameter(parameter))
  const attributes = html`id="${id}" name="${name}" data-in="${place}"`
  const label = html`<label for="${id}">${name}${required ? ' (required)' : ''}</label>`
  if (schema.enum && !required) {
    const options = schema.enum.map((value) => html`<option>${inline(value)}</option>`)
    return html`<div>${label}<select ${attributes}><option value="">any</option>${options}</select></div>`
  }
  const known = [schema.default, parameter.example, schema.example, schema.examples?.[0]]
  const hint = inline(known.find((value) => value !== undefined) ?? '')
  const placeholder = hint || !required ? hint : exampleOfParameter(document, parameter)
  return html`<div>${label}<input ${attributes} type="text" placeholder="${placeholder}" ${plain}${
    required ? html` required` : undefined
  }></div>`
}
