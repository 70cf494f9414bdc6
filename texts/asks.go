package texts

// Asks says what a call is about to do, as a question to the person who may allow it. What
// stands in the places is marked up already.
type Asks struct {
	Use      Format // the name of a tool
	UseKnown Format // what people call a tool; its name
	UseOf    Format // what people call a tool of an MCP server; its name; the server
	RunOwn   Format // a custom tool
	Sample   Format // an MCP server that wants a model's answer

	Delete, Write, Edit, MakeFolder Format // a file or folder
	Run, RunOnline, RunInBackground Format // a command: without the network, with it, in the background

	Send, SendTo Format // a message: the chat; the chat, its channel
	SendFiles    Count  // so many files: their names, the chat, its channel
	Open         Format // a host
	OpenPages    Count  // so many pages: their hosts
	Search       Format // words

	AddJob                                Format // what the job is told, or its name
	EditJob, RemoveJob, EnableJob, RunJob Format // a job
	DisableJob                            Format // a job
	Delegate                              Format // a task
	DelegateMany                          Count  // so many tasks: their names
}

// ToolNames is what people call the tools that Parley has.
type ToolNames struct {
	ReadFile, ListFiles, WriteFile, EditFile, DeleteFile, MakeFolder, FindFile string
	FindFiles, SearchFiles, EditNotebook                                       string
	Search, ReadPage, ReadPages                                                string
	Command, CommandState, StopCommand, Python                                 string
	Calculator, Weather, Text, JSON                                            string
	Message, Question, Memory, Schedule, Delegate, Finish                      string
	FindTool, CallTool                                                         string
}

// Of returns what people call the tool of that name, or "" if it is none of Parley's own.
func (n *ToolNames) Of(tool string) string {
	return map[string]string{
		"read_file":          n.ReadFile,
		"list_dir":           n.ListFiles,
		"write_file":         n.WriteFile,
		"edit_file":          n.EditFile,
		"file_delete":        n.DeleteFile,
		"file_mkdir":         n.MakeFolder,
		"file_exists":        n.FindFile,
		"glob":               n.FindFiles,
		"grep":               n.SearchFiles,
		"notebook_edit":      n.EditNotebook,
		"web_search":         n.Search,
		"web_fetch":          n.ReadPage,
		"fetch_page":         n.ReadPage,
		"crawl_batch":        n.ReadPages,
		"exec":               n.Command,
		"exec_status":        n.CommandState,
		"exec_stop":          n.StopCommand,
		"execute_python":     n.Python,
		"calculator":         n.Calculator,
		"get_weather":        n.Weather,
		"text_process":       n.Text,
		"json_process":       n.JSON,
		"message":            n.Message,
		"ask_user":           n.Question,
		"memory_search":      n.Memory,
		"cron":               n.Schedule,
		"spawn":              n.Delegate,
		"multi_agent":        n.Delegate,
		"new_task":           n.Delegate,
		"attempt_completion": n.Finish,
		"find_tool":          n.FindTool,
		"call_tool":          n.CallTool,
	}[tool]
}
