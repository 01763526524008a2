/** One operation: what it takes, what it answers, and a form that tries it. */
import {
  type Content,
  inline,
  type OpenApi,
  type OperationObject,
  type Parameter,
  type Response,
  resolve,
  toJson,
} from './document.ts'
import { codeBlock, type Html, html, phrase, prose } from './html.ts'
import { content, fields, typeOf } from './schema.ts'

/** An operation, folded up; `docs.js` gives its form life. */
export function operation(
  document: OpenApi,
  method: string,
  path: string,
  object: OperationObject,
): Html {
  const { operationId: id, summary, description, deprecated, parameters = [] } = object
  const address = html`<code class="path">${path}</code>`
  return html`
    <details class="entry operation" data-entry="operation" id="${id}">
      <summary>
        <h3>
          <span class="method ${method.toLowerCase()}">${method}</span>
          ${deprecated ? html`<s>${address}</s> <span class="deprecated">deprecated</span>` : address}
          <code class="id">${id}</code>
          <span class="title">${summary}</span>
        </h3>
      </summary>
      <div class="inside">
        <div class="reference">
          <a class="to-form" href="#${id}-form" hidden>Try it out</a>
          ${prose(description)}
          ${parameters.length > 0 ? html`<h4>Parameters</h4>${fields(document, parameters)}` : undefined}
          ${body(document, object)}
          <h4>Responses</h4>
          ${Object.entries(object.responses).map(([status, each]) => response(document, status, each))}
        </div>
        ${trial(document, method, path, object)}
      </div>
    </details>`
}

function body(document: OpenApi, { requestBody }: OperationObject): Html[] {
  return Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => html`
      <h4>Request body · ${type}${requestBody?.required ? ' · required' : ''}</h4>
      <p>${typeOf(schema)}</p>
      ${content(document, schema)}`,
  )
}

const media = (content: Content = {}) => Object.values(content)[0]

/** A response. What success brings is open to view; of an error the line says most. */
function response(document: OpenApi, status: string, object: Response): Html {
  const { description, headers, content: forms } = object
  const { schema, example, examples = {} } = media(forms) ?? {}
  const values = example === undefined ? Object.values(examples) : [{ value: example }]
  const isError = status >= '4'
  const codes = isError ? values.map(({ value }) => (value as { code: string }).code) : []
  const names = Object.keys(headers).map(
    (name) => html`<a href="#header-${name}"><code>${name}</code></a> `,
  )
  return html`
    <details class="response" data-status="${status}"${isError ? undefined : html` open`}>
      <summary>
        <code class="status s${status.slice(0, 1)}">${status}</code>
        <span>
          ${codes.map((code) => html`<code>${code}</code> `)}
          <span class="description">${phrase(description)}</span>
        </span>
      </summary>
      ${schema && html`<p>Body: ${typeOf(schema)}</p>`}
      ${schema && !isError ? content(document, schema) : undefined}
      ${values.map(({ value }) => codeBlock('Example', toJson(value)))}
      <p class="names">Response headers: ${names}</p>
    </details>`
}

/** The form. Its samples and answers are made by `docs.js`, which is why it is hidden without. */
function trial(document: OpenApi, method: string, path: string, object: OperationObject): Html {
  const { operationId: id, parameters = [], requestBody, security = [] } = object
  const example = requestBody && media(requestBody.content)?.example
  const keyed = security.length > 0 || undefined
  return html`
    <form class="trial" id="${id}-form" aria-label="Try ${id}" data-method="${method}" data-path="${path}" hidden>
      <h4>Try it out</h4>
      ${
        keyed &&
        html`
      <label for="${id}-key">API key</label>
      <input id="${id}-key" data-in="key" type="password" aria-describedby="${id}-key-hint" ${plain}>
      <p class="hint" id="${id}-key-hint">Used for all operations here; not stored.</p>`
      }
      ${parameters.map((parameter) => input(document, `${id}-${parameter.name}`, parameter))}
      ${
        requestBody &&
        html`
      <label for="${id}-body">Body</label>
      <textarea id="${id}-body" data-in="body" rows="6" ${plain}>${
        example === undefined ? '' : toJson(example)
      }</textarea>`
      }
      <p class="hint">
        Sends to <code class="target"></code>${
          method === 'GET' ? undefined : html`: <strong>this changes real data</strong>`
        }
      </p>
      <button type="submit">Send</button>
      <div class="answer" role="group" aria-label="Answer">
        <p role="status"></p>
        <div class="result" hidden>
          <div class="bar"><button type="button" class="next">Next page</button></div>
          ${codeBlock('Content')}
          <details><summary>Response headers</summary>${codeBlock('Response headers')}</details>
        </div>
      </div>
      <div class="samples">
        <div class="bar"></div>
        ${codeBlock('Code')}
        ${keyed && html`<p class="hint">It takes your key from the environment variable API_KEY.</p>`}
      </div>
    </form>`
}

/** What is typed is taken as it is. */
const plain = html`autocomplete="off" autocapitalize="off" spellcheck="false"`

function input(document: OpenApi, id: string, parameter: Parameter): Html {
  const { in: place, name, required = false, schema } = parameter
  const { enum: known, default: omitted, examples = [] } = resolve(document, schema)
  const attributes = html`id="${id}" name="${name}" data-in="${place}"`
  const label = html`<label for="${id}">${name}${required ? ' (required)' : ''}</label>`
  if (known && !required) {
    const options = known.map((value) => html`<option>${String(value)}</option>`)
    return html`${label}<select ${attributes}><option value="">any</option>${options}</select>`
  }
  const hint = inline(omitted ?? examples[0] ?? '')
  return html`${label}<input ${attributes} type="text" placeholder="${hint}" ${plain}${
    required ? html` required` : undefined
  }>`
}
