/** One operation: what it takes, samples of its request, its answers, and a form that sends it. */
import {
  examplesOf,
  inline,
  type OpenApi,
  type Operation,
  type Parameter,
  type Response,
  type Route,
  schemaOf,
  toJson,
} from './document.ts'
import { anchor, codeBlock, type Html, html, phrase, prose } from './html.ts'
import { fields, tree, typeOf } from './schema.ts'

export function operationEntry(document: OpenApi, { method, path, operation }: Route): Html {
  const { operationId: id, summary = id, parameters = [], requestBody, deprecated } = operation
  const address = html`<code>${path}</code>`
  return html`
      <article class="pair" id="${id}">
        <div class="words">
          <h3>${summary}${anchor(id)}</h3>
          <p>
            <span class="method ${method.toLowerCase()}">${method}</span>
            ${deprecated ? html`<s>${address}</s> <span class="deprecated">deprecated</span>` : address}
            <code class="type">${id}</code>
          </p>
          ${prose(operation.description)}
          ${parameters.length > 0 && html`<h4>Parameters</h4>${fields(document, parameters)}`}
          ${Object.entries(requestBody?.content ?? {}).map(
            ([type, { schema = {} }]) => html`
          <h4>Request body <small>${type}</small></h4>
          ${tree(document, schema)}`,
          )}
          ${trial(document, method, path, operation)}
        </div>
        <div class="code">
          ${samples(document, { method, path, operation })}
          <h4>Responses</h4>
          ${Object.entries(operation.responses).map(([status, each], index) => response(status, each, index === 0))}
        </div>
      </article>`
}

/** The request as code: as a command, and in the languages of the document. */
function samples(document: OpenApi, route: Route): Html[] {
  const { 'x-codeSamples': others = [] } = route.operation
  const all = [{ lang: 'curl', source: curl(document, route) }, ...others]
  return all.map(({ lang, source }, index) =>
    folded(index === 0, html`Sample: ${lang}`, codeBlock(lang, source)),
  )
}

/** The request as a command, with the examples of the path and of the body. */
function curl({ servers }: OpenApi, { method, path, operation }: Route): string {
  const { parameters = [], requestBody } = operation
  const address = parameters.reduce(
    (url, { name, schema }) => url.replace(`{${name}}`, inline(schema?.examples?.[0] ?? 1)),
    `${servers?.[0]?.url ?? ''}${path}`,
  )
  const body = examplesOf(requestBody?.content).slice(0, 1)
  return [
    `curl -i ${method === 'GET' ? '' : `-X ${method} `}'${address}'`,
    '-H "Authorization: Bearer $API_KEY"',
    ...body.flatMap((value) => [
      "-H 'Content-Type: application/json'",
      `--data-raw '${JSON.stringify(value).replaceAll("'", "'\\''")}'`,
    ]),
  ].join(' \\\n  ')
}

const folded = (isOpen: boolean, line: Html, inside: Html): Html => html`
          <details${isOpen && html` open`}>
            <summary>${line}</summary>
            ${inside}
          </details>`

/** An answer: an example of it, the type of its body, and its headers. */
function response(status: string, object: Response, isOpen: boolean): Html {
  const { description, headers = {}, content = {} } = object
  const names = Object.keys(headers).map(
    (name) => html`<a href="#header-${name}"><code>${name}</code></a> `,
  )
  const types = Object.entries(content).map(
    ([type, { schema = {} }]) => html`<p class="hint">${type}: ${typeOf(schema)}</p>`,
  )
  return folded(
    isOpen,
    html`<code class="s${status.slice(0, 1)}">${status}</code> ${phrase(description)}`,
    html`
            ${examplesOf(content).map((value) => codeBlock(`Example of ${status}`, toJson(value)))}
            ${types.length > 0 ? types : html`<p class="hint">The answer has no body.</p>`}
            ${names.length > 0 && html`<p class="hint">Headers: ${names}</p>`}`,
  )
}

/** What is typed is taken as it is. */
const plain = html`autocomplete="off" autocapitalize="off" spellcheck="false"`

/** The form, which is hidden until `docs.js` makes it work. */
function trial(document: OpenApi, method: string, path: string, operation: Operation): Html {
  const { operationId: id, parameters = [], requestBody, 'x-safe': isSafe } = operation
  const [example] = examplesOf(requestBody?.content)
  return html`
          <form class="trial" aria-label="Try ${id}" data-method="${method}" data-path="${path}" hidden>
            <h4>Try it out</h4>
            <div class="inputs">${parameters.map((parameter) => input(document, id, parameter))}</div>
            ${
              requestBody &&
              html`
            <label for="${id}-body">Body</label>
            <textarea id="${id}-body" name="body" rows="6" ${plain}>${example === undefined ? '' : toJson(example)}</textarea>`
            }
            <p class="hint">
              Sends to <code class="target"></code>${method !== 'GET' && !isSafe && html`: <strong>this changes real data</strong>`}
            </p>
            <button type="submit">Send</button>
            <div class="answer" role="group" aria-label="Answer">
              <p role="status"></p>
              <div hidden>${codeBlock('Content', '')}${codeBlock('Response headers', '')}</div>
            </div>
          </form>`
}

/** A field of the form. An example in it is only a hint: what is left empty is not sent. */
function input(document: OpenApi, operationId: string, parameter: Parameter): Html {
  const { in: place = '', name, required = false, schema: part } = parameter
  const schema = schemaOf(document, part)
  const id = `${operationId}-${name}`
  const attributes = html`id="${id}" name="${name}" data-in="${place}"${required && html` required`}`
  const label = html`<label for="${id}">${name}${required && ' (required)'}</label>`
  if (schema.enum) {
    const options = schema.enum.map((value) => html`<option>${inline(value)}</option>`)
    return html`<div>${label}<select translate="no" ${attributes}><option value="">any</option>${options}</select></div>`
  }
  const hint = inline(schema.default ?? schema.examples?.[0] ?? '')
  return html`<div>${label}<input ${attributes} placeholder="${hint}" ${plain}></div>`
}
